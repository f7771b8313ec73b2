// Times the training of the two-layer patch network on patches in memory; bench/peers/pmoe.py compares it with PyTorch.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

// Declares the options (--samples 1000 --form separate ...) on `app`. Once they are read, prints one line of JSON:
// epoch_ms (the median), router_epoch_ms, peak_mb of the process.
void add_pmoe_bench(CLI::App& app);

}  // namespace sparsight::bench
