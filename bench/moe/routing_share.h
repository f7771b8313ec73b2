// The share of routing in the forward pass of an MoE layer. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight::bench {

// Prints one line for each K of `ks`: medians of `rounds` rounds over different tokens. Permute and combine, which
// expert_mlp() does itself, are timed as separate operations, which costs somewhat more than inside.
void print_routing_share(int64_t tokens, int64_t experts, const std::vector<int64_t>& ks, int64_t rounds);

}  // namespace sparsight::bench
