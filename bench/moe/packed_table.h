// The table of experts packed as bf16 and int8, compared with fp32, at small batches. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight::bench {

struct PackedSizes {
  std::vector<int64_t> tokens, experts, k;  // T (those up to 197 are run), E, K
  int64_t rounds = 7;
};

// Times are forward, in milliseconds; error: the largest difference from fp32 over the largest value of the result.
void print_packed_table(const PackedSizes& sizes);

}  // namespace sparsight::bench
