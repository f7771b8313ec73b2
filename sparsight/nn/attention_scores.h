// The two attention functions of Shazeer et al. 2017, appendix E ("Attention Function"): the score of each source
// position for each target position, from small MLPs instead of dot products.
// Letters: moe/axes.md; S source and T target positions, I and J their widths, A the attention width.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

struct AttentionScoreWeights {
  at::Tensor source;  // U [I,A]
  at::Tensor target;  // W [J,A]
  at::Tensor mix;     // V [A]
};

// source: [...,S,I], target: [...,T,J]. Both return [...,S,T] and are differentiable.

// sum_d V_d tanh((x U)_d) tanh((y W)_d): the paper's form. Two projections and one matrix product.
at::Tensor product_attention_scores(const at::Tensor& source, const at::Tensor& target,
                                    const AttentionScoreWeights& weights);

// sum_d V_d tanh((x U)_d + (y W)_d): the older form that it replaces (Bahdanau et al. 2015). Takes S T A numbers of
// memory.
at::Tensor additive_attention_scores(const at::Tensor& source, const at::Tensor& target,
                                     const AttentionScoreWeights& weights);

}  // namespace sparsight
