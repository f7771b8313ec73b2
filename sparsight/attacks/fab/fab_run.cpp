#include "sparsight/attacks/fab/fab_run.h"

#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/stack.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/fab/hyperplane.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/routed/objective.h"

namespace sparsight {
namespace {

// z_c - z_y of a class c of each image, or z_target minus the largest other logit, and its gradient.
struct ClassDifference {
  at::Tensor value;     // [B]
  at::Tensor gradient;  // [B,...]
};

ClassDifference towards_target(AttackedModel& model, const AttackBatch& batch, const at::Tensor& x, uint64_t step) {
  const AttackLoss loss = batch.labels.targeted ? attack_loss::margin : attack_loss::targeted_margin;
  const AttackEvaluation at_x = evaluate_objective(model, {.loss = loss}, batch, x, step);
  return {at_x.loss, at_x.gradient};
}

// [B,K-1] int64: the classes of each image other than its own, [B,1], in order.
at::Tensor other_classes(const at::Tensor& label, int64_t classes) {
  const at::Tensor c = at::arange(classes - 1, at::kLong).unsqueeze(0);
  return c + c.ge(label).to(at::kLong);
}

// [B,K]: the norms of gradients [B,K,D] that distances to hyperplanes are divided by: l1 for linf, l2 for l2, linf for
// l1.
at::Tensor dual_norms(const at::Tensor& gradients, Norm norm) {
  if (norm == Norm::l1) return gradients.abs().amax(2);
  return norm == Norm::linf ? gradients.abs().sum(2) : gradients.square().sum(2).sqrt();
}

// The class whose boundary is closest to x by the linear model: |z_c - z_y| over the dual norm of its gradient.
ClassDifference towards_closest(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, Norm norm,
                                uint64_t step) {
  const at::AutoGradMode grad_mode(true);
  const at::Tensor x = pixels.detach().requires_grad_(true);
  const at::Tensor logits = model.forward(x, {batch.image, step}).logits;
  const at::Tensor label = batch.labels.label.unsqueeze(1);
  const at::Tensor differences = logits.gather(1, other_classes(label, logits.size(1))) - logits.gather(1, label);
  std::vector<at::Tensor> gradients;
  for (int64_t c = 0; c < differences.size(1); ++c) {
    x.mutable_grad() = at::Tensor();
    differences.select(1, c).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/false, {{x}});
    model.count_gradients(x.size(0));
    gradients.push_back(x.grad().detach());
  }
  const at::NoGradGuard no_grad;
  const at::Tensor difference = differences.detach(), all = at::stack(gradients, 1);  // [B,K-1], [B,K-1,...]
  const at::Tensor dual = dual_norms(all.flatten(2), norm);
  const at::Tensor closest = (difference.abs() / (dual + 1e-12)).argmin(1, /*keepdim=*/true);
  const at::Tensor gradient = all.index({at::arange(x.size(0), at::kLong), closest.squeeze(1)});
  return {difference.gather(1, closest).squeeze(1), gradient};
}

// The next point: between the projections of x and of the image onto the boundary of the linear model, the nearer of
// the two weighing more, both a little beyond it.
at::Tensor fab_step(const at::Tensor& x, const at::Tensor& image, const ClassDifference& difference,
                    const ThreatModel& threat, const FabRunOptions& options) {
  const at::Tensor w = difference.gradient.flatten(1), flat_x = x.flatten(1), flat_image = image.flatten(1);
  const auto move = [&](const at::Tensor& from, const at::Tensor& excess) {
    return move_to_hyperplane(from, w, excess, threat.norm, threat.range).view(x.sizes());
  };
  const at::Tensor from_x = move(flat_x, difference.value);
  const at::Tensor from_image = move(flat_image, difference.value + (w * (flat_image - flat_x)).sum(1));
  const at::Tensor near = image_norms(from_x, threat.norm).clamp_min(1e-8);
  const at::Tensor far = image_norms(from_image, threat.norm).clamp_min(1e-8);
  const at::Tensor pull = per_image((near / (near + far)).clamp_max(options.max_pull), x);
  const at::Tensor moved =
      (1 - pull) * (x + options.overshoot * from_x) + pull * (image + options.overshoot * from_image);
  return moved.clamp(threat.range.low, threat.range.high);
}

}  // namespace

FabRun run_fab(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
               const FabRunOptions& options, const at::Tensor& start, uint64_t first) {
  const at::Tensor& image = batch.pixels;
  FabRun run{image, at::full({image.size(0)}, std::numeric_limits<double>::infinity(), at::kDouble)};
  at::Tensor x = start;
  const SavedLoop loop(context.saver, first, {&run.closest, &run.distance, &x});
  for (int64_t i = loop.done(options.iterations) + 1; i <= options.iterations; ++i) {
    const uint64_t step = first + 2 * static_cast<uint64_t>(i);
    const ClassDifference difference = batch.labels.target.defined()
                                           ? towards_target(model, batch, x, step)
                                           : towards_closest(model, batch, x, context.threat.norm, step);
    x = fab_step(x, image, difference, context.threat, options);
    const at::Tensor fooled = ~evaluate_loss(model, {.loss = attack_loss::margin}, batch, x, step + 1).correct;
    const at::Tensor distance = image_norms(x - image, context.threat.norm);
    const at::Tensor closer = fooled & (distance < run.distance);
    run.closest = choose_images(closer, x, run.closest);
    run.distance = choose_images(closer, distance, run.distance);
    if (context.observe) context.observe({i, batch.image, x, -distance, -run.distance, {}});
    x = choose_images(fooled, image + options.backward * (x - image), x);
    loop.mark_and_save(i);
  }
  return run;
}

}  // namespace sparsight
