#include "sparsight/ops/ref/attention.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight::ref {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// [B,T,parts D] -> [B,H,T,d], of one part.
at::Tensor split_heads(const at::Tensor& x, int64_t parts, int64_t part, int64_t heads) {
  const int64_t size = x.size(2) / parts / heads;
  return x.view({x.size(0), x.size(1), parts, heads, size}).select(2, part).transpose(1, 2);
}

// Softmax and its sums are in this type.
at::ScalarType wide(at::ScalarType type) { return type == at::kDouble ? type : at::kFloat; }

// q k^T / sqrt(d) [B,H,Q,S]
at::Tensor scores(const at::Tensor& qkv, int64_t heads, int64_t queries) {
  const at::Tensor q = split_heads(qkv, 3, 0, heads).narrow(2, 0, queries), k = split_heads(qkv, 3, 1, heads);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  return at::matmul(q * scale, k.transpose(-2, -1)).to(wide(qkv.scalar_type()));
}

}  // namespace

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries) {
  const at::Tensor score = scores(qkv, heads, queries);
  const at::Tensor probability = score.softmax(-1).to(qkv.scalar_type());
  AttentionOutput output;
  output.out = at::matmul(probability, split_heads(qkv, 3, 2, heads))
                   .transpose(1, 2)
                   .reshape({qkv.size(0), queries, qkv.size(2) / 3});
  if (needs_log_sum) output.log_sum = at::logsumexp(score, -1) * kLog2E;
  return output;
}

// dV = P^T dO, dP = dO V^T, dS = P (dP - rowsum(dO O)), where P are the probabilities and S the scores.
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward) {
  const int64_t heads = forward.log_sum.size(1), queries = grad.size(1);
  const auto type = qkv.scalar_type();
  const at::Tensor k = split_heads(qkv, 3, 1, heads), v = split_heads(qkv, 3, 2, heads);
  const at::Tensor q = split_heads(qkv, 3, 0, heads).narrow(2, 0, queries);
  const at::Tensor out_grad = split_heads(grad, 1, 0, heads), out = split_heads(forward.out, 1, 0, heads);
  const at::Tensor probability = at::exp2(scores(qkv, heads, queries) * kLog2E - forward.log_sum.unsqueeze(-1));
  const at::Tensor delta = at::sum(out_grad * out, -1, /*keepdim=*/true, wide(type));
  const at::Tensor probability_grad = at::matmul(out_grad, v.transpose(-2, -1));
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor score_grad = (probability * (probability_grad - delta) * scale).to(type);
  at::Tensor qkv_grad = at::zeros_like(qkv);
  split_heads(qkv_grad, 3, 0, heads).narrow(2, 0, queries).copy_(at::matmul(score_grad, k));
  split_heads(qkv_grad, 3, 1, heads).copy_(at::matmul(score_grad.transpose(-2, -1), q));
  split_heads(qkv_grad, 3, 2, heads).copy_(at::matmul(probability.to(type).transpose(-2, -1), out_grad));
  return qkv_grad;
}

}  // namespace sparsight::ref
