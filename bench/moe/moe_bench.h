// The tables of the MoE layer's experts: compared with the machine's limits and with other implementations, and packed
// in fewer bits.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

// Declares the options (--tokens 197 --experts 8,32 --k 1,2 ...) on `app`, and prints the tables once they are read.
void add_moe_bench(CLI::App& app);

}  // namespace sparsight::bench
