// Counts of images and their shares.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace sparsight::robust_moe {

inline int64_t count_true(const at::Tensor& which) { return which.sum().item<int64_t>(); }

// "0110...": of each image, 1 for true.
inline std::string to_bits(const at::Tensor& which) {
  const at::Tensor values = which.to(at::kChar).contiguous();
  std::string bits(static_cast<size_t>(values.numel()), '0');
  for (size_t i = 0; i < bits.size(); ++i)
    if (values.const_data_ptr<int8_t>()[i] != 0) bits[i] = '1';
  return bits;
}

// 0 of nothing.
inline double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace sparsight::robust_moe
