// How much of the forward pass of an MoE layer is routing rather than experts. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight::bench {

// A line for each K of `ks`: medians of `rounds` rounds over different tokens. Permuting and combining, which the
// experts' operation does itself, are timed apart as operations of their own: somewhat more than they cost inside.
void print_routing_share(int64_t tokens, int64_t experts, const std::vector<int64_t>& ks, int64_t rounds);

}  // namespace sparsight::bench
