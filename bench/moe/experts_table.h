// The tables of the fp32 experts, forward and in training, compared with the limits and with other implementations.
// Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/limits/peak.h"

namespace sparsight::bench {

struct ExpertsTable {
  std::vector<int64_t> tokens, experts, k;  // T, E, K
  int64_t rounds = 7;
  bool contenders = true, training = true;
};

void print_experts_table(const ExpertsTable& table, const Peaks& peaks);

}  // namespace sparsight::bench
