// ops/expert_mlp.h for fp32 on a CPU. The work is split into tasks by the numbers of rows alone, never by the number of
// threads, and each thread takes the next task when it is free: results have the same bits for any number of threads.
#pragma once

#include "sparsight/ops/cpu/packed_layout.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::cpu {

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& weights,
                              Activation activation, at::Tensor* kept, const ResidualAdd& add = {},
                              KeptHidden what = KeptHidden::pre_activation);
ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& weights, Activation activation, const at::Tensor& kept,
                                       ExpertMlpNeeds needs, KeptHidden what = KeptHidden::pre_activation);

// packed: in panels, with `layout`.
at::Tensor packed_experts_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                  const PackedLayout& layout, Activation activation);

}  // namespace sparsight::cpu
