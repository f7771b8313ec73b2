// The two-layer patch network trained on patches in memory, for bench/peers/pmoe.py to time beside PyTorch.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

// Declares the options (--samples 1000 --form separate ...) on `app`, and once they are read prints one line of JSON:
// epoch_ms (the median), router_epoch_ms, peak_mb of the process.
void add_pmoe_bench(CLI::App& app);

}  // namespace sparsight::bench
