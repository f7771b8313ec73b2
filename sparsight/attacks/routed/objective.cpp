#include "sparsight/attacks/routed/objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "sparsight/attacks/routed/clean_pass.h"
#include "sparsight/attacks/routed/routing_losses.h"
#include "sparsight/core/error.h"
#include "sparsight/core/random.h"

namespace sparsight {

void RoutingAttackOptions::declare(OptionSet& set) {
  std::vector<std::string> names = routing_loss_names();
  names.insert(names.begin(), "none");
  set.choice(
      "routing_loss", &loss, names,
      "attacks the routing: kl, the divergence of the routers' probabilities from those of the clean image; "
      "gate_gap, the distance between the experts that the clean image chose and the next best; drops, the share "
      "of assignments that capacity drops");
  set.real("routing_weight", &weight, {0, 1e6}, "weight of routing_loss");
}

namespace {

// The clean images of a batch; of a batch that no attack has prepared, its own.
struct Reference {
  std::shared_ptr<const CleanImages> images;
  at::Tensor row;  // [B]
  const CleanPass* pass = nullptr;
};

Reference make_reference(AttackedModel& model, const Objective& objective, const AttackBatch& batch) {
  Reference reference{batch.clean, batch.row};
  const bool of_images = objective.routing.is_on() && objective.routing.loss != "drops";
  if (!reference.images) {
    reference.images = std::make_shared<CleanImages>(
        batch.pixels, batch.image.defined() ? batch.image : at::arange(batch.pixels.size(0), at::kLong));
    reference.row = at::arange(batch.pixels.size(0), at::kLong);
  }
  if (of_images || objective.path.needs_clean_pass())
    reference.pass = &reference.images->pass(model, objective.path.needs_clean_tokens());
  return reference;
}

// [B]. A router loss is added to the loss of every image: the objective of the batch is the mean over images.
at::Tensor image_losses(const ModelOutput& output, const Objective& objective, const AttackBatch& batch,
                        const Reference& reference) {
  at::Tensor loss = objective.loss(output.logits, batch.labels);
  if (objective.router.task_weight != 1) loss = loss * objective.router.task_weight;
  if (!objective.router.router_losses.empty()) loss = loss + router_loss(output, objective.router);
  if (objective.routing.is_on())
    loss =
        loss + objective.routing.weight * routing_loss(objective.routing.loss, output,
                                                       reference.pass ? *reference.pass : CleanPass(), reference.row);
  return loss;
}

void add(at::Tensor& sum, const at::Tensor& term) { sum = sum.defined() ? sum + term : term; }

// What one pass returns.
struct PassResult {
  at::Tensor loss, gradient, logits;
};

PassResult run_pass(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                    const Reference& reference, const at::Tensor& pixels, const AttackPass& pass, bool with_gradient) {
  const at::AutoGradMode grad_mode(with_gradient);
  const at::Tensor x = pixels.detach().requires_grad_(with_gradient);
  const ModelOutput output = model.forward(x, pass);
  const at::Tensor losses = image_losses(output, objective, batch, reference);
  PassResult result{losses.detach(), {}, output.logits.detach()};
  if (!with_gradient) return result;
  losses.sum().backward({}, /*retain_graph=*/false, /*create_graph=*/false, {{x}});
  model.count_gradients(x.size(0));
  if (!x.grad().defined())
    fail(
        "the logits do not depend on the pixels through differentiable operations; use an attack without gradients, "
        "such as square");
  result.gradient = x.grad().detach();
  return result;
}

// The gradient by a path other than the model's.
at::Tensor gradient_by_path(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                            const Reference& reference, const at::Tensor& pixels, AttackPass pass) {
  if (objective.routing.loss == "drops" && objective.path.through == "mixture")
    fail_usage(
        "routing_loss = drops has no gradient through a mixture, in which capacity drops nothing; use gradient = "
        "model or router");
  int64_t layers = 0;
  pass.pre_experts_hook = make_hook(objective.path, reference.pass, reference.row, &layers);
  at::Tensor gradient = run_pass(model, objective, batch, reference, pixels, pass, true).gradient;
  if (layers == 0)
    fail("gradient = ", objective.path.through,
         " is a way through MoE layers, and this model has none; use gradient = "
         "model");
  return gradient;
}

AttackEvaluation evaluate(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                          const at::Tensor& pixels, uint64_t step, bool with_gradient) {
  const auto passes = static_cast<uint64_t>(objective.passes);
  const Reference reference = make_reference(model, objective, batch);
  const bool other_path = with_gradient && !objective.path.is_model();
  at::Tensor loss, gradient, logits, votes;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const AttackPass at{batch.image, step * passes + pass};
    PassResult result = run_pass(model, objective, batch, reference, pixels, at, with_gradient && !other_path);
    if (other_path) result.gradient = gradient_by_path(model, objective, batch, reference, pixels, at);
    add(loss, result.loss);
    add(logits, result.logits);
    add(votes, withstands_attack(result.logits, batch.labels).to(at::kLong));
    if (with_gradient) add(gradient, result.gradient);
  }
  const at::Tensor correct = (votes * 2).ge(objective.passes);
  if (passes == 1) return {loss, gradient, correct, logits};
  const auto count = static_cast<double>(passes);
  return {loss / count, with_gradient ? gradient / count : gradient, correct, logits / count};
}

}  // namespace

AttackEvaluation evaluate_objective(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                                    const at::Tensor& pixels, uint64_t step) {
  return evaluate(model, objective, batch, pixels, step, true);
}

AttackEvaluation evaluate_loss(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                               const at::Tensor& pixels, uint64_t step) {
  return evaluate(model, objective, batch, pixels, step, false);
}

}  // namespace sparsight
