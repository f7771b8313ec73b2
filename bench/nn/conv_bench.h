// Convolutions for inference: the packed ones of engine/conv_chain.h against oneDNN's, as torch calls them.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

// Declares the options (--batch 1,32 --rounds 7 ...) on `app`. Once they are read, prints a table of convolutions of
// wide and of plain residual networks, and one of whole networks.
void add_conv_bench(CLI::App& app);

}  // namespace sparsight::bench
