// The table of experts packed as bf16 and int8, compared with fp32, at small batches. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/limits/peak.h"

namespace sparsight::bench {

struct PackedSizes {
  std::vector<int64_t> tokens, experts, k;  // T (those up to 197 are run), E, K
  int64_t rounds = 7;
};

// Times are forward, in milliseconds; limit: the larger of the multiply-adds at the fastest peak that the type allows
// and of reading the packed weights; error: the largest difference from fp32 over the largest value of the result.
void print_packed_table(const PackedSizes& sizes, const Peaks& peaks);

}  // namespace sparsight::bench
