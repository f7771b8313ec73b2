#include "sparsight/ops/cpu/pack_weights.h"

#include <ATen/ops/empty.h>

#include "sparsight/kernels/pack/pack_experts.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {

at::ScalarType stored_type(WeightType type) {
  return type == WeightType::fp32 ? at::kFloat : type == WeightType::bf16 ? at::kBFloat16 : at::kChar;
}

at::Tensor pack_weights(const at::Tensor& w1, const at::Tensor& w2, const PackedLayout& layout) {
  const int64_t experts = w1.size(0);
  // The arena has large pages, from which long streams are read faster.
  at::Tensor packed = empty_from_arena({experts, layout.expert_bytes() / 4}).view(at::kByte);
  pack_experts(torch_threads(), layout, experts, w1.const_data_ptr(), w2.const_data_ptr(), packed.data_ptr());
  return packed;
}

UnpackedWeights unpack_weights(const at::Tensor& packed, const PackedLayout& layout) {
  const int64_t experts = packed.size(0);
  const at::ScalarType type = stored_type(layout.type);
  UnpackedWeights out{at::empty({experts, layout.width, layout.hidden}, type),
                      at::empty({experts, layout.hidden, layout.width}, type)};
  unpack_experts(torch_threads(), layout, experts, packed.const_data_ptr(), out.w1.data_ptr(), out.w2.data_ptr());
  return out;
}

}  // namespace sparsight::cpu
