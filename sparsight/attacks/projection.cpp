#include "sparsight/attacks/projection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/where.h>

#include "sparsight/attacks/l1_ball.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/core/error.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

// x + offset in the dtype of x, rounded towards x.
at::Tensor inward_bound(const at::Tensor& x, double offset) {
  if (x.scalar_type() == at::kDouble) return x + offset;
  const at::Tensor exact = x.to(at::kDouble) + offset, rounded = exact.to(x.scalar_type());
  const at::Tensor wide = rounded.to(at::kDouble), outside = offset > 0 ? wide > exact : wide < exact;
  return at::where(outside, at::nextafter(rounded, x), rounded);
}

constexpr int64_t kProjectionGrain = 1 << 14;  // values for each thread at least

bool in_one_pass(const at::Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

// The neighbours of a number of fp32, as std::nextafter.
float next_below(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(value > 0 ? bits - 1 : value < 0 ? bits + 1 : 0x80000001u);
}
float next_above(float value) { return -next_below(-value); }

// inward_bound of a number.
float find_lower_bound(float x, double epsilon) {
  const double exact = static_cast<double>(x) - epsilon;
  const auto rounded = static_cast<float>(exact);
  return static_cast<double>(rounded) < exact ? next_above(rounded) : rounded;
}
float find_upper_bound(float x, double epsilon) {
  const double exact = static_cast<double>(x) + epsilon;
  const auto rounded = static_cast<float>(exact);
  return static_cast<double>(rounded) > exact ? next_below(rounded) : rounded;
}
double find_lower_bound(double x, double epsilon) { return x - epsilon; }
double find_upper_bound(double x, double epsilon) { return x + epsilon; }

// inward_bound of all numbers, below and above.
template <class Real>
std::pair<at::Tensor, at::Tensor> ball_bounds(const at::Tensor& x, double radius) {
  const at::Tensor around = x.contiguous(), low = at::empty_like(around), high = at::empty_like(around);
  const Real* from = around.const_data_ptr<Real>();
  Real *to_low = low.mutable_data_ptr<Real>(), *to_high = high.mutable_data_ptr<Real>();
  cpu::run_ranges(cpu::torch_threads(), x.numel(), kProjectionGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to_low[i] = find_lower_bound(from[i], radius);
      to_high[i] = find_upper_bound(from[i], radius);
    }
  });
  return {low, high};
}

template <class Real>
at::Tensor step_in_bounds(const at::Tensor& v, const at::Tensor& gradient, double size, const at::Tensor& low,
                          const at::Tensor& high, const PixelRange& range) {
  const at::Tensor start = v.contiguous(), slopes = gradient.contiguous();
  at::Tensor stepped = at::empty_like(start);
  const Real *from = start.const_data_ptr<Real>(), *slope = slopes.const_data_ptr<Real>(),
             *lower = low.const_data_ptr<Real>(), *upper = high.const_data_ptr<Real>();
  Real* to = stepped.mutable_data_ptr<Real>();
  const auto step = static_cast<Real>(size), black = static_cast<Real>(range.low),
             white = static_cast<Real>(range.high);
  cpu::run_ranges(cpu::torch_threads(), v.numel(), kProjectionGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {  // without branches or std::min(), so that it becomes vectors
      const Real g = slope[i], low_here = lower[i], high_here = upper[i];
      Real x = from[i] + step * (static_cast<Real>(g > 0) - static_cast<Real>(g < 0));
      x = x < low_here ? low_here : x;
      x = high_here < x ? high_here : x;
      x = x < black ? black : x;
      to[i] = white < x ? white : x;
    }
  });
  return stepped;
}

// Nothing where they are made already.
void make_bounds(const at::Tensor& x, double radius, at::Tensor& low, at::Tensor& high) {
  if (low.defined()) return;
  if (!in_one_pass(x))
    low = inward_bound(x, -radius), high = inward_bound(x, radius);
  else
    std::tie(low, high) =
        x.scalar_type() == at::kDouble ? ball_bounds<double>(x, radius) : ball_bounds<float>(x, radius);
}

}  // namespace

Projection::Projection(const at::Tensor& x, const ThreatModel& threat, double norm_guard)
    : x_(x), threat_(threat), norm_guard_(norm_guard) {}

at::Tensor Projection::to_ball(const at::Tensor& v) const {
  if (threat_.norm == Norm::linf) {
    make_bounds(x_, threat_.epsilon, low_, high_);
    return at::minimum(at::maximum(v, low_), high_);
  }
  if (threat_.norm == Norm::l1) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    return project_l1(v, x_, threat_.epsilon, {-kFar, kFar});
  }
  const at::Tensor delta = v - x_, norm = image_norms(delta, Norm::l2);
  if (norm_guard_ > 0) return x_ + delta * per_image(norm.clamp_max(threat_.epsilon) / (norm + norm_guard_), delta);
  const at::Tensor factor = at::where(norm > threat_.epsilon, threat_.epsilon / norm, at::full_like(norm, 1.0));
  return x_ + delta * per_image(factor, delta);
}

at::Tensor Projection::to_pixels(const at::Tensor& v) const { return v.clamp(threat_.range.low, threat_.range.high); }

at::Tensor Projection::operator()(const at::Tensor& v) const {
  if (threat_.norm == Norm::l1) return project_l1(v, x_, threat_.epsilon, threat_.range);
  return to_pixels(to_ball(v));
}

at::Tensor Projection::step(const at::Tensor& v, const at::Tensor& gradient, double size) const {
  const auto like_x = [&](const at::Tensor& values) {
    return in_one_pass(values) && values.scalar_type() == x_.scalar_type() && values.sizes() == x_.sizes();
  };
  if (threat_.norm != Norm::linf || !in_one_pass(x_) || !like_x(v) || !like_x(gradient))
    return (*this)(v + size * ascent_direction(gradient, threat_.norm, norm_guard_));
  make_bounds(x_, threat_.epsilon, low_, high_);
  return x_.scalar_type() == at::kDouble ? step_in_bounds<double>(v, gradient, size, low_, high_, threat_.range)
                                         : step_in_bounds<float>(v, gradient, size, low_, high_, threat_.range);
}

at::Tensor ascent_direction(const at::Tensor& gradient, Norm norm, double norm_guard) {
  SPARSIGHT_CHECK(norm != Norm::l1);
  if (norm == Norm::linf) return gradient.sign();
  const at::Tensor length = image_norms(gradient, Norm::l2) + norm_guard;
  const at::Tensor scaled = gradient.to(at::kDouble) / per_image(length, gradient.to(at::kDouble));
  return at::where(per_image(length > 0, gradient), scaled, 0.0).to(gradient.scalar_type());
}

at::Tensor inside_ball(const at::Tensor& perturbed, const at::Tensor& x, const ThreatModel& threat) {
  if (threat.norm == Norm::linf) return perturbed;  // to_ball() rounds its bounds inwards
  at::Tensor inside = perturbed;
  const at::Tensor centre = x.to(at::kDouble);
  const double rounding = perturbed.scalar_type() == at::kDouble ? 1e-15 : 1e-8;
  for (double shrink = rounding; shrink < 1; shrink *= 2) {
    const at::Tensor delta = inside.to(at::kDouble) - centre, norm = image_norms(delta, threat.norm),
                     outside = norm > threat.epsilon;
    if (!outside.any().item<bool>()) break;
    const at::Tensor nearer = centre + delta * per_image((1 - shrink) * threat.epsilon / norm, delta);
    inside = choose_images(outside, nearer.to(inside.scalar_type()), inside);
  }
  return inside;
}

}  // namespace sparsight
