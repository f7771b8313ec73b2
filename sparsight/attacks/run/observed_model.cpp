#include "sparsight/attacks/run/observed_model.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"

namespace sparsight {
namespace {

// The gradient, with 0 where it is not finite.
at::Tensor counted(const at::Tensor& gradient, GradientCounts& counts) {
  const at::NoGradGuard no_grad;
  // The largest magnitudes, which NaN and infinity reach, in one pass over memory.
  const at::Tensor largest = at::linalg_vector_norm(gradient.detach().flatten(1), INFINITY, 1),
                   finite = at::isfinite(largest);
  counts.images += largest.size(0);
  counts.zero += largest.eq(0).sum().item<int64_t>();
  if (finite.all().item<bool>()) return gradient;
  counts.not_finite += finite.logical_not().sum().item<int64_t>();
  return gradient.nan_to_num(0, 0, 0);
}

}  // namespace

int64_t ObservedModel::image_queries(int64_t image) const {
  const auto found = queries_.find(image);
  return found == queries_.end() ? 0 : found->second;
}

void ObservedModel::set_counts(const AttackCounts& counts) {
  AttackedModel::set_counts(counts);
  queries_ = counts.queries;
  *gradients_ = counts.gradients;
}

ModelOutput ObservedModel::passes(const at::Tensor& pixels, const AttackPass& pass) {
  if (!exact_ || pixels.size(0) <= 1) return model_.forward(pixels, pass);
  ModelOutput output;
  std::vector<at::Tensor> logits;
  const std::vector<at::Tensor> images = pixels.split(1), numbers = pass.image.split(1);
  for (size_t i = 0; i < images.size(); ++i)
    logits.push_back(model_.forward(images[i], {numbers[i], pass.step}).logits);
  output.logits = at::cat(logits);
  return output;
}

void ObservedModel::check_alone() const {
  if (!exact_ || !model_.coupled()) return;
  if (model_.coupling().choices)
    fail_usage(
        "--exact runs each image alone, but routers of this model choose experts among all images of a batch, so ",
        "that the results would be of another model; leave it out");
  fail_usage("--exact runs each image alone, but images of this model share the experts' capacity; leave it out, or ",
             "give every token its experts with --set capacity.eval_factor=0");
}

ModelOutput ObservedModel::run(const at::Tensor& pixels, const AttackPass& pass) {
  if (interrupted()) fail("interrupted; run the same command again to go on with the images that are left");
  if (pixels.requires_grad() && at::GradMode::is_enabled())
    pixels.register_hook([counts = gradients_](const at::Tensor& gradient) { return counted(gradient, *counts); });
  ModelOutput output = passes(pixels, pass);
  check_alone();
  if (!at::isfinite(output.logits.detach()).all().item<bool>())
    fail("the model's outputs are not finite; its checkpoint is damaged or its training failed");
  const at::Tensor numbers = pass.image.contiguous();
  for (int64_t i = 0; i < numbers.size(0); ++i) ++queries_[numbers.const_data_ptr<int64_t>()[i]];
  return output;
}

}  // namespace sparsight
