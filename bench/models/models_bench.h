// The tables of whole models: forward passes ("models") and training steps ("train"). bench/peers/models.py times other
// engines on the same weights in turn with the workers of this program.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::bench {

void add_models_bench(CLI::App& app);
void add_train_bench(CLI::App& app);

}  // namespace sparsight::bench
