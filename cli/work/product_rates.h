// How fast matrices are multiplied on this machine now.
#pragma once

#include <cstdint>

#include "sparsight/ops/product_type.h"

namespace sparsight::cli {

// GFLOP/s on torch's threads of a linear layer of 768 inputs and outputs on 1024 rows: the best of some runs, in a
// tenth of a second. ours: with the kernels of ops/, in fp32 or bf16. torch: with torch's, in fp32.
struct ProductRates {
  double ours = 0, ours_bf16 = 0, torch = 0;  // ours_bf16: 0 where the level in use does not multiply bf16
};
ProductRates measure_products();

}  // namespace sparsight::cli
