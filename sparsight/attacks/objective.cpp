#include "sparsight/attacks/objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/random.h"

namespace sparsight {

void RouterLossOptions::declare(OptionSet& set) {
  set.strings("router_losses", &router_losses,
              "auxiliary losses of the routers that are attacked too, such as importance");
  set.real("router_weight", &router_weight, {0, 1e6}, "multiplies the weights that these losses have in training");
  set.real("task_weight", &task_weight, {0, 1e6},
           "weight of the classification loss; 0: attack the router losses alone");
}

namespace {

// The weighted sum over layers of the chosen losses, [].
at::Tensor router_loss(const ModelOutput& output, const RouterLossOptions& options) {
  at::Tensor sum;
  for (const std::string& name : options.router_losses) {
    std::vector<std::string> known;
    bool found = false;
    for (const NamedLoss& loss : output.losses) {
      known.push_back(loss.name);
      if (loss.name != name) continue;
      const at::Tensor term = options.router_weight * loss.weight * loss.value;
      sum = sum.defined() ? sum + term : term;
      found = true;
    }
    if (!found)
      fail("the attack includes the router loss \"", name, "\", but this pass computes ",
           known.empty() ? "none" : join(known), "; give it a weight in [losses], and attack in a mode with losses",
           " (load losses also need noise)");
  }
  return sum;
}

// [B]. A router loss is added to the loss of every image: the objective of the batch is the mean over images.
at::Tensor losses_of(const ModelOutput& output, const Objective& objective, const AttackBatch& batch) {
  at::Tensor loss = objective.loss(output.logits, batch.labels);
  if (objective.router.task_weight != 1) loss = loss * objective.router.task_weight;
  if (objective.router.router_losses.empty()) return loss;
  return loss + router_loss(output, objective.router).to(loss.scalar_type());
}

void add(at::Tensor& sum, const at::Tensor& term) { sum = sum.defined() ? sum + term : term; }

AttackEvaluation evaluate(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                          const at::Tensor& pixels, uint64_t step, bool with_gradient) {
  const at::AutoGradMode grad_mode(with_gradient);
  const auto passes = static_cast<uint64_t>(objective.passes);
  at::Tensor loss, gradient, logits, votes;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const at::Tensor x = pixels.detach().requires_grad_(with_gradient);
    const ModelOutput output = model.forward(x, {batch.image, step * passes + pass});
    const at::Tensor losses = losses_of(output, objective, batch);
    if (with_gradient) {
      losses.sum().backward({}, /*retain_graph=*/false, /*create_graph=*/false, {{x}});
      model.count_gradients(x.size(0));
      SPARSIGHT_CHECK(x.grad().defined());
      add(gradient, x.grad().detach());
    }
    add(loss, losses.detach());
    add(logits, output.logits.detach());
    add(votes, classified_correctly(output.logits.detach(), batch.labels.label).to(at::kLong));
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
