#include "sparsight/attacks/apgd/sparse_steps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>

#include "sparsight/attacks/l1_ball.h"

namespace sparsight {
namespace {

constexpr double kFirstShare = 0.2;    // of all pixels
constexpr double kFewerPixels = 0.95;  // of those before, below which steps begin again

}  // namespace

SparseSteps::SparseSteps(const at::Tensor& image, const PixelRange& range) : image_(image), range_(range) {
  const int64_t pixels = image.numel() / image.size(0);
  const int64_t left_out = static_cast<int64_t>((1 - kFirstShare) * static_cast<double>(pixels));
  count_ = at::full({image.size(0)}, pixels - left_out, at::kLong);
  changed_before_ = at::full({image.size(0)}, pixels, at::kLong);
}

at::Tensor SparseSteps::direction(const at::Tensor& x, const at::Tensor& gradient) const {
  return sparse_ascent(movable_gradient(gradient, x, image_, range_), count_);
}

at::Tensor SparseSteps::check(const at::Tensor& best) {
  const auto pixels = static_cast<double>(image_.numel() / image_.size(0));
  const at::Tensor changed = (best != image_).flatten(1).sum(1), wide = changed.to(at::kDouble);
  const at::Tensor fewer = wide / changed_before_.to(at::kDouble) < kFewerPixels;
  // In the arithmetic of the authors' code, which rounds the number up.
  const at::Tensor left_out = ((1 - wide / pixels / kReduction) * pixels).clamp(0, pixels - 1).to(at::kLong);
  count_ = at::minimum(static_cast<int64_t>(pixels) - left_out, (changed - 1).clamp_min(1));
  changed_before_ = changed;
  return fewer;
}

}  // namespace sparsight
