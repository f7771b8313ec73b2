// Packed copies of weights (cpu/packed_operand.h) that are kept from pass to pass, for models whose weights stay as
// they are, as under attack: packing them is a hundredth or more of a forward pass of few images.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/kernel_types.h"

namespace sparsight {

// Which packed copy of which numbers.
struct PackedKey {
  const void* data = nullptr;
  int64_t rows = 0, columns = 0;
  bool transposed = false;
  WeightType type = WeightType::fp32;
  auto operator<=>(const PackedKey&) const = default;
};

class PackedCache {
 public:
  PackedCache() = default;  // keeps nothing
  // Keeps copies of these tensors and of parts of them, and no others: memory of temporary ones is used again.
  explicit PackedCache(std::vector<at::Tensor> weights);

  // Drops all copies if one of the weights has been written to since the last call.
  void refresh();

  // The copy of that key, or else what pack() returns, which is kept. From any thread.
  at::Tensor get(const PackedKey& key, const std::function<at::Tensor()>& pack);

  // The calling thread's cache: that of the innermost PackedCacheScope, or null.
  static PackedCache* current();

 private:
  bool has(const void* data) const;

  std::vector<at::Tensor> weights_;
  int64_t version_ = 0;
  std::mutex mutex_;
  std::map<PackedKey, at::Tensor> copies_;
};

class PackedCacheScope {
 public:
  explicit PackedCacheScope(PackedCache* cache);
  ~PackedCacheScope();
  PackedCacheScope(const PackedCacheScope&) = delete;
  PackedCacheScope& operator=(const PackedCacheScope&) = delete;

 private:
  PackedCache* before_;
};

}  // namespace sparsight
