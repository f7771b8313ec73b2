// The cost of attacks against that of their passes: the loop, images that leave the batch, adversarial training,
// memory.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

// Declares the options (--size 12x192 --batch 32 --rounds 7 ...) on `app`, and prints the tables once they are read.
void add_attack_bench(CLI::App& app);

}  // namespace sparsight::bench
