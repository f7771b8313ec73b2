// A rank that bench/peers/dist.py times: a process of a group that takes training steps when rank 0 is told to.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

void add_dist_bench(CLI::App& app);

}  // namespace sparsight::bench
