// Error bounds of experts packed in fewer bits, derived from the arithmetic of ops/packed_experts.h.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/kernels/kernels.h"
#include "sparsight/ops/packed_experts.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "tests/ops/expert_cases.h"

namespace sparsight::test {

// `c` in fp64, with the unpacked weights of `packed`.
struct Exact {
  ExpertRows rows;
  ExpertMlpWeights w;
  at::Tensor tokens;
};
inline Exact exact(const Case& c, const PackedExperts& packed) {
  const ExpertMlpWeights w = unpacked_experts(packed);
  Exact out{c.rows, {as_double(w.w1), as_double(w.b1), as_double(w.w2), as_double(w.b2)}, as_double(c.tokens)};
  out.rows.gate = as_double(c.rows.gate);
  return out;
}

// [N,D]
inline at::Tensor exact_result(const Exact& e, Activation activation) {
  return ref::expert_mlp_forward(e.tokens, e.rows, e.w, activation, nullptr);
}

inline at::Tensor abs_power(const at::Tensor& x, double p) { return x.defined() ? x.abs().pow(p) : x; }

// Whether the level in use rounds rows of tokens too, and the hidden layer.
inline bool rounds_rows(WeightType type) {
  return type == WeightType::int8 || (type == WeightType::bf16 && cpu::kernels().multiplies_bf16);
}

// Error bound of products with rounded rows: [N,D]. They round the rows x of tokens and the active hidden layer
// h.
// - bf16 has 8 significant bits, so rounding to nearest errs by up to half a unit of the last one: 2^-8 |x|.
// - With int8 weights, numbers count in steps of max|row| / 127 and err by up to half of one; rows are cut into blocks
//   whose largest values are at most the row's.
// An error d of x moves the hidden layer before its activation by d |W1|, and after it by up to 1.13 times as much
// (the steepest slope of gelu; silu's is 1.10). All the rest is fp32: sums of n terms, each rounded by 2^-24 and, where
// products are too, by as much again. 2^-22 (n + 8) of the sum of magnitudes covers these and the activation.
// p = 1 adds magnitudes: the worst case. p = 2 adds squares: the expected error, as roundings are independent and
// uniform over a unit, with a standard deviation of 1/sqrt 3 of the half unit.
inline at::Tensor packed_error(const Exact& e, WeightType type, Activation activation, double p) {
  const auto spread = [&](const at::Tensor& values) {  // of rounding, to the power of p
    const double even = p == 2 ? 1 / std::sqrt(3.0) : 1;
    if (type == WeightType::bf16) return abs_power(values * (even * std::ldexp(1.0, -8)), p);
    const at::Tensor step = values.numel() > 0 ? values.abs().amax(1, true) / 127 : values;
    return abs_power(step * (even * 0.501), p).expand_as(values).contiguous();
  };
  const auto through = [&](const at::Tensor& errors, const at::Tensor& values, const at::Tensor& w,
                           const at::Tensor& b) {
    const double sums = std::ldexp(static_cast<double>(w.size(1) + 8), -22);
    const at::Tensor magnitude = ref::grouped_linear_forward(values.abs(), e.rows.offsets, w.abs(), abs_power(b, 1));
    return ref::grouped_linear_forward(errors, e.rows.offsets, abs_power(w, p), {}) + abs_power(magnitude * sums, p);
  };
  const at::Tensor in = gather_rows(e.tokens, {}, e.rows.map);
  const at::Tensor pre_activation = ref::grouped_linear_forward(in, e.rows.offsets, e.w.w1, e.w.b1);
  const at::Tensor hidden = activate(pre_activation, activation);
  at::Tensor error = through(spread(in), in, e.w.w1, e.w.b1) * std::pow(1.13, p);
  const at::Tensor moved = hidden.abs() + error.pow(1 / p);  // what is rounded
  error = through(error + spread(moved), moved, e.w.w2, e.w.b2);
  return scatter_add_rows(error, abs_power(e.rows.gate, p), e.rows.map).pow(1 / p) + 1e-30;
}

// Passes if `got`, computed at the level in use, is within the worst-case bound.
inline ::testing::AssertionResult within_packed_error(const at::Tensor& got, const Exact& e, WeightType type,
                                                      Activation activation) {
  const at::Tensor want = exact_result(e, activation);
  if (got.sizes() != want.sizes())
    return ::testing::AssertionFailure() << "shape " << got.sizes() << ", expected " << want.sizes();
  const at::Tensor error = (as_double(got) - want).abs();
  // If rows are not rounded, weights are widened exactly and everything is fp32.
  const at::Tensor allowed = rounds_rows(type) ? packed_error(e, type, activation, 1) : want.abs() * 2e-5 + 5e-5;
  if ((error <= allowed).all().item<bool>()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "largest error " << error.max().item<double>() << ", "
                                       << (error / allowed).max().item<double>() << " times what is allowed";
}

}  // namespace sparsight::test
