// Tensors as the kernels read them.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/gemm/weight_view.h"

namespace sparsight::cpu {

// w: [E,rows,columns], contiguous itself or after mT().
inline WeightView weight_view(const at::Tensor& w) {
  return {const_cast<float*>(w.const_data_ptr<float>()), w.size(1), w.size(2), !w.is_contiguous()};
}

inline const float* float_data(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }
inline float* floats_to(const at::Tensor& x) { return x.defined() ? x.data_ptr<float>() : nullptr; }

}  // namespace sparsight::cpu
