// The two-layer patch network trained on patches in memory, for bench/peers/pmoe.py to time beside PyTorch.
#pragma once

#include <string>
#include <vector>

namespace sparsight::bench {

// arguments: pairs such as --samples 1000 --epochs 5 --threads 2 --form separate. Prints one line of JSON: epoch_ms
// (the median), router_epoch_ms, peak_mb of the process. Returns 0.
int run_pmoe_bench(const std::vector<std::string>& arguments);

}  // namespace sparsight::bench
