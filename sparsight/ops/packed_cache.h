// Packed copies of weights that are tensors, which are dropped when one of these is written to.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/pack/packed_copies.h"

namespace sparsight {

class PackedCache final : public cpu::PackedCopies {
 public:
  PackedCache() = default;  // keeps nothing
  // Keeps copies of these tensors and of parts of them.
  explicit PackedCache(std::vector<at::Tensor> weights);

  // Drops all copies if one of the weights has been written to since the last call.
  void refresh();

 private:
  bool keeps(const void* data) const override;

  std::vector<at::Tensor> weights_;
  int64_t version_ = 0;
};

using PackedCacheScope = cpu::PackedCopiesScope;

}  // namespace sparsight
