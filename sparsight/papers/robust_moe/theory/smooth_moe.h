// The theory's layers of Puigcerver, Jenatton, Riquelme, Awasthi, Bhojanapalli 2022, "On the Adversarial Robustness of
// Mixture of Experts": the smooth MoE f(x) = sum_i p_i(x) f_i(x) with p = softmax(S x) (equation 2), its gradient in
// two parts and the bound of lemma 1, and the top-1 layer (equation 1). Letters: N inputs, D width, E experts, C
// outputs. Everything is float64; norms are l2, of matrices spectral.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight::robust_moe {

// Experts with gradients in closed form: f_ec(x) = scale_ec phi(<directions_ec, x> + shift_ec) + offset_ec. The slope
// of each phi is at most 1.
struct RidgeExperts {
  enum class Phi { identity, tanh, sine };
  Phi phi = Phi::identity;
  at::Tensor directions;            // [E,C,D]
  at::Tensor scale, shift, offset;  // [E,C]

  at::Tensor values(const at::Tensor& x) const;     // [N,D] -> [N,E,C]
  at::Tensor jacobians(const at::Tensor& x) const;  // [N,D] -> [N,E,C,D]
  // [E]: the Lipschitz constant of each, the spectral norm of scale * directions (for C > 1 an upper bound of it).
  at::Tensor lipschitz() const;
};

// f_i(x) = <w_i, x> + b_i. weights [E,D], offset [E]; C = 1.
RidgeExperts linear_experts(const at::Tensor& weights, const at::Tensor& offset);
// f_i(x) = a_i tanh(<v_i, x>) + c_i. directions [E,D], scale and offset [E]; C = 1.
RidgeExperts tanh_experts(const at::Tensor& directions, const at::Tensor& scale, const at::Tensor& offset);

struct TheoryMoe {
  at::Tensor router;  // S [E,D], with a row s_i for each expert
  RidgeExperts experts;
};

at::Tensor smooth_outputs(const TheoryMoe& moe, const at::Tensor& x);  // [N,D] -> [N,C]

// Equation 1: the output of the expert with the largest score, without a gate. Differs from the paper: a tie goes to
// the lowest index, not to one of the best at random.
at::Tensor top1_outputs(const TheoryMoe& moe, const at::Tensor& x);  // [N,D] -> [N,C]

// The Jacobian of the smooth MoE: sum_i p_i J_i, which the experts contribute, plus sum_i p_i f_i (s_i - mean row)^T,
// which the router contributes.
struct GradientSplit {
  at::Tensor gates;             // p [N,E]
  at::Tensor mean_row;          // sum_i p_i s_i [N,D]
  at::Tensor outputs;           // [N,C]
  at::Tensor experts, router;   // [N,C,D]
  at::Tensor bound;             // [N]: sum_i p_i L_i + |router| (lemma 1)
  at::Tensor pointwise_bound;   // [N]: sum_i p_i |J_i(x)| + |router|, which is never larger
  at::Tensor gradient() const;  // [N,C,D]
};
GradientSplit split_gradient(const TheoryMoe& moe, const at::Tensor& x);

at::Tensor spectral_norms(const at::Tensor& matrices);  // [...,C,D] -> [...]

// The norm of the router's part of two scalar experts with gate p of the first: p (1 - p) |f_1 - f_2| |s_1 - s_2|.
double two_expert_router_norm(double p, double first, double second, double row_distance);

// Lemma 1 on a set of inputs. Differs from the paper: the supremum in equation 7 is taken over these inputs; over the
// whole space it is infinite for linear experts unless w_1 - w_2 is parallel to s_1 - s_2.
struct Lemma1Check {
  double gradient = 0, router = 0, lipschitz = 0;      // the largest |gradient|, |router's part|, L_i
  double tightness = 0;                                // the largest |gradient| / bound of lemma 1
  double difference = 0;                               // the largest entry of the gradient minus its central difference
  int64_t violations = 0;                              // inputs where the gradient exceeds one of the three bounds
  double bound() const { return lipschitz + router; }  // equation 7
};
Lemma1Check check_lemma1(const TheoryMoe& moe, const at::Tensor& x);

// [points^2,2]: a square grid over [-half_width, half_width]^2.
at::Tensor square_grid(double half_width, int64_t points);

}  // namespace sparsight::robust_moe
