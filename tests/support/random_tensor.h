// Reproducible random tensors for tests.
#pragma once

#include <torch/types.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight::test {

inline at::Tensor random_tensor(at::IntArrayRef sizes, uint64_t seed, at::ScalarType type = torch::kDouble) {
  return normal_like(torch::empty({0}, type == torch::kDouble ? torch::kDouble : torch::kFloat), sizes,
                     RandomStream(seed, "test"))
      .to(type);
}

}  // namespace sparsight::test
