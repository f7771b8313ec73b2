// Packed copies of weights (packed_operand.h) that are kept from pass to pass, for models whose weights stay as they
// are, as under attack: packing them is a hundredth or more of a forward pass of few images.
#pragma once

#include <compare>
#include <map>
#include <mutex>

#include "sparsight/core/function_ref.h"
#include "sparsight/kernels/pack/packed_matrix.h"

namespace sparsight::cpu {

// Which packed copy of which numbers.
struct PackedKey {
  const void* data = nullptr;
  int64_t rows = 0, columns = 0;
  bool transposed = false;
  WeightType type = WeightType::fp32;
  auto operator<=>(const PackedKey&) const = default;
};

class PackedCopies {
 public:
  virtual ~PackedCopies() = default;

  // The copy of that key, or else what pack() returns, which is kept. From any thread.
  PackedMatrix get(const PackedKey& key, FunctionRef<PackedMatrix()> pack);

  void clear();

  // The calling thread's copies: those of the innermost PackedCopiesScope, or null.
  static PackedCopies* current();

 private:
  // Whether the numbers there stay: no others are kept, as memory of temporary ones is used again.
  virtual bool keeps(const void* data) const = 0;

  std::mutex mutex_;
  std::map<PackedKey, PackedMatrix> copies_;
};

class PackedCopiesScope {
 public:
  explicit PackedCopiesScope(PackedCopies* copies);
  ~PackedCopiesScope();
  PackedCopiesScope(const PackedCopiesScope&) = delete;
  PackedCopiesScope& operator=(const PackedCopiesScope&) = delete;

 private:
  PackedCopies* before_;
};

}  // namespace sparsight::cpu
