#include "sparsight/nn/attention_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tanh.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

void check_weights(const AttentionScoreWeights& weights) {
  const int64_t width = weights.mix.size(0);
  SPARSIGHT_CHECK(weights.source.dim() == 2 && weights.source.size(1) == width);
  SPARSIGHT_CHECK(weights.target.dim() == 2 && weights.target.size(1) == width);
}

}  // namespace

at::Tensor product_attention_scores(const at::Tensor& source, const at::Tensor& target,
                                    const AttentionScoreWeights& weights) {
  check_weights(weights);
  const at::Tensor left = at::matmul(source, weights.source).tanh() * weights.mix;  // [...,S,A]
  const at::Tensor right = at::matmul(target, weights.target).tanh();               // [...,T,A]
  return at::matmul(left, right.transpose(-2, -1));
}

at::Tensor additive_attention_scores(const at::Tensor& source, const at::Tensor& target,
                                     const AttentionScoreWeights& weights) {
  check_weights(weights);
  const at::Tensor left = at::matmul(source, weights.source).unsqueeze(-2);   // [...,S,1,A]
  const at::Tensor right = at::matmul(target, weights.target).unsqueeze(-3);  // [...,1,T,A]
  return at::matmul((left + right).tanh(), weights.mix);
}

}  // namespace sparsight
