#include "sparsight/papers/robust_moe/theory/smooth_moe.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/error.h"

namespace sparsight::robust_moe {
namespace {

constexpr double kRounding = 1e-12;  // relative
constexpr double kStep = 1e-5;       // of central differences: their error is about 1e-10

at::Tensor arguments(const RidgeExperts& experts, const at::Tensor& x) {
  const at::Tensor flat = experts.directions.flatten(0, 1);  // [E C,D]
  return x.matmul(flat.t()).view({x.size(0), experts.directions.size(0), -1}) + experts.shift;
}

at::Tensor apply_phi(RidgeExperts::Phi phi, const at::Tensor& u) {
  return phi == RidgeExperts::Phi::tanh ? u.tanh() : phi == RidgeExperts::Phi::sine ? u.sin() : u;
}

at::Tensor apply_phi_slope(RidgeExperts::Phi phi, const at::Tensor& u) {
  if (phi == RidgeExperts::Phi::tanh) return 1 - u.tanh().square();
  return phi == RidgeExperts::Phi::sine ? u.cos() : at::zeros_like(u) + 1;
}

RidgeExperts scalar_experts(RidgeExperts::Phi phi, const at::Tensor& directions, const at::Tensor& scale,
                            const at::Tensor& offset) {
  return {phi, directions.unsqueeze(1), scale.unsqueeze(1), at::zeros_like(scale).unsqueeze(1), offset.unsqueeze(1)};
}

void check_input(const TheoryMoe& moe, const at::Tensor& x) {
  if (x.dim() != 2 || x.size(1) != moe.router.size(1) || x.scalar_type() != at::kDouble)
    fail_usage("the smooth MoE needs float64 inputs [N,", moe.router.size(1), "], got ", x.toString(), " of size ",
               x.sizes());
}

}  // namespace

at::Tensor RidgeExperts::values(const at::Tensor& x) const {
  return scale * apply_phi(phi, arguments(*this, x)) + offset;
}

at::Tensor RidgeExperts::jacobians(const at::Tensor& x) const {
  return (scale * apply_phi_slope(phi, arguments(*this, x))).unsqueeze(-1) * directions;
}

at::Tensor RidgeExperts::lipschitz() const { return spectral_norms(scale.unsqueeze(-1) * directions); }

RidgeExperts linear_experts(const at::Tensor& weights, const at::Tensor& offset) {
  return scalar_experts(RidgeExperts::Phi::identity, weights, at::zeros_like(offset) + 1, offset);
}

RidgeExperts tanh_experts(const at::Tensor& directions, const at::Tensor& scale, const at::Tensor& offset) {
  return scalar_experts(RidgeExperts::Phi::tanh, directions, scale, offset);
}

at::Tensor smooth_outputs(const TheoryMoe& moe, const at::Tensor& x) {
  check_input(moe, x);
  const at::Tensor gates = x.matmul(moe.router.t()).softmax(1);
  return (gates.unsqueeze(-1) * moe.experts.values(x)).sum(1);
}

at::Tensor top1_outputs(const TheoryMoe& moe, const at::Tensor& x) {
  check_input(moe, x);
  const at::Tensor best = x.matmul(moe.router.t()).argmax(1);  // the first of equal scores
  const at::Tensor values = moe.experts.values(x);
  return values.gather(1, best.view({-1, 1, 1}).expand({-1, 1, values.size(2)})).squeeze(1);
}

at::Tensor GradientSplit::gradient() const { return experts + router; }

GradientSplit split_gradient(const TheoryMoe& moe, const at::Tensor& x) {
  check_input(moe, x);
  const at::Tensor values = moe.experts.values(x), jacobians = moe.experts.jacobians(x);
  GradientSplit split;
  split.gates = x.matmul(moe.router.t()).softmax(1);
  split.mean_row = split.gates.matmul(moe.router);
  const at::Tensor weighted = split.gates.unsqueeze(-1) * values;                    // [N,E,C]
  const at::Tensor centred = moe.router.unsqueeze(0) - split.mean_row.unsqueeze(1);  // [N,E,D]
  split.outputs = weighted.sum(1);
  split.experts = (split.gates.unsqueeze(-1).unsqueeze(-1) * jacobians).sum(1);
  split.router = weighted.transpose(1, 2).matmul(centred);
  const at::Tensor router_norms = spectral_norms(split.router);
  split.bound = split.gates.matmul(moe.experts.lipschitz()) + router_norms;
  split.pointwise_bound = (split.gates * spectral_norms(jacobians)).sum(1) + router_norms;
  return split;
}

at::Tensor spectral_norms(const at::Tensor& matrices) {
  if (matrices.size(-2) == 1) return at::linalg_vector_norm(matrices.squeeze(-2), 2, {-1});
  return at::linalg_svdvals(matrices).select(-1, 0);
}

double two_expert_router_norm(double p, double first, double second, double row_distance) {
  return p * (1 - p) * std::abs(first - second) * row_distance;
}

Lemma1Check check_lemma1(const TheoryMoe& moe, const at::Tensor& x) {
  const GradientSplit split = split_gradient(moe, x);
  const at::Tensor gradient = split.gradient(), norms = spectral_norms(gradient);
  Lemma1Check found;
  found.gradient = norms.max().item<double>();
  found.router = spectral_norms(split.router).max().item<double>();
  found.lipschitz = moe.experts.lipschitz().max().item<double>();
  found.tightness = (norms / split.bound).max().item<double>();
  const at::Tensor exceeded = (norms > split.bound * (1 + kRounding))
                                  .logical_or(norms > split.pointwise_bound * (1 + kRounding))
                                  .logical_or(norms > found.bound() * (1 + kRounding));
  found.violations = exceeded.sum().item<int64_t>();
  for (int64_t d = 0; d < x.size(1); ++d) {
    at::Tensor step = at::zeros_like(x);
    step.select(1, d).fill_(kStep);
    const at::Tensor slope = (smooth_outputs(moe, x + step) - smooth_outputs(moe, x - step)) / (2 * kStep);
    found.difference = std::max(found.difference, (gradient.select(2, d) - slope).abs().max().item<double>());
  }
  return found;
}

at::Tensor square_grid(double half_width, int64_t points) {
  if (!(half_width > 0) || points < 2)
    fail_usage("a grid needs a half width above 0 and at least 2 points a side, got ", half_width, " and ", points);
  const at::Tensor side = at::linspace(-half_width, half_width, points, at::kDouble);
  return at::stack({side.repeat_interleave(points), side.repeat({points})}, 1);
}

}  // namespace sparsight::robust_moe
