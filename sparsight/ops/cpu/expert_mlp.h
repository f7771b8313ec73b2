// ops/expert_mlp.h for fp32 on a CPU, on the kernels of kernels/experts/.
#pragma once

#include "sparsight/kernels/pack/packed_layout.h"
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
// packed: in tiles, with `layout`; at the level amx.
at::Tensor packed_tiles_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                const PackedLayout& layout, Activation activation);

}  // namespace sparsight::cpu
