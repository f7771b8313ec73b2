#include "sparsight/moe/experts/moe_mlp.h"

namespace sparsight {

at::Tensor moe_mlp(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& weights,
                   Activation activation, const DropoutMask& dropout) {
  ExpertRows in = rows_in_place(rows, offsets);
  in.dropout = dropout;
  return expert_mlp(rows, in, weights, {activation});
}

}  // namespace sparsight
