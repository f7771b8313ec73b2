#include "sparsight/moe/experts/moe_mlp.h"

namespace sparsight {

at::Tensor moe_mlp(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& weights,
                   Activation activation) {
  return expert_mlp(rows, rows_in_place(rows, offsets), weights, {activation});
}

}  // namespace sparsight
