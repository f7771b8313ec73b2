// The tables of the MoE layer's experts: against the machine's limits and other ways to run them, and held in fewer
// bits.
#pragma once

#include <string>
#include <vector>

namespace sparsight::bench {

// arguments: pairs such as --tokens 197 --experts 8,32 --k 1,2 --threads 2 --rounds 7 --held off. Returns 0.
int run_moe_bench(const std::vector<std::string>& arguments);

}  // namespace sparsight::bench
