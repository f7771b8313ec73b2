// Counts of images and their shares.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight::robust_moe {

inline int64_t count_true(const at::Tensor& which) { return which.sum().item<int64_t>(); }

// 0 of nothing.
inline double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace sparsight::robust_moe
