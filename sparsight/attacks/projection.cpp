#include "sparsight/attacks/projection.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/where.h>

#include "sparsight/attacks/per_image.h"

namespace sparsight {
namespace {

// x + offset in the dtype of x, rounded towards x.
at::Tensor inward_bound(const at::Tensor& x, double offset) {
  if (x.scalar_type() == at::kDouble) return x + offset;
  const at::Tensor exact = x.to(at::kDouble) + offset, rounded = exact.to(x.scalar_type());
  const at::Tensor wide = rounded.to(at::kDouble), outside = offset > 0 ? wide > exact : wide < exact;
  return at::where(outside, at::nextafter(rounded, x), rounded);
}

}  // namespace

Projection::Projection(const at::Tensor& x, const ThreatModel& threat, double norm_guard)
    : x_(x), threat_(threat), norm_guard_(norm_guard) {
  if (threat.norm != Norm::linf) return;
  low_ = inward_bound(x, -threat.epsilon);
  high_ = inward_bound(x, threat.epsilon);
}

at::Tensor Projection::to_ball(const at::Tensor& v) const {
  if (threat_.norm == Norm::linf) return at::minimum(at::maximum(v, low_), high_);
  const at::Tensor delta = v - x_, norm = image_norms(delta, Norm::l2);
  if (norm_guard_ > 0) return x_ + delta * per_image(norm.clamp_max(threat_.epsilon) / (norm + norm_guard_), delta);
  const at::Tensor factor = at::where(norm > threat_.epsilon, threat_.epsilon / norm, at::full_like(norm, 1.0));
  return x_ + delta * per_image(factor, delta);
}

at::Tensor Projection::to_pixels(const at::Tensor& v) const { return v.clamp(threat_.range.low, threat_.range.high); }

at::Tensor ascent_direction(const at::Tensor& gradient, Norm norm, double norm_guard) {
  if (norm == Norm::linf) return gradient.sign();
  const at::Tensor length = image_norms(gradient, Norm::l2) + norm_guard;
  const at::Tensor scaled = gradient.to(at::kDouble) / per_image(length, gradient.to(at::kDouble));
  return at::where(per_image(length > 0, gradient), scaled, 0.0).to(gradient.scalar_type());
}

}  // namespace sparsight
