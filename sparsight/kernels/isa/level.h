// An instruction-set level: what the kernels are compiled for, with a table of its own. Each architecture has a list of
// levels (isa/levels_*.cpp).
#pragma once

#include <span>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

struct Level {
  const char* name;
  bool (*is_here)();  // whether this CPU has its instructions
  const Kernels& (*kernels)();
  // Whether a product is one chain of fused multiply-adds over the depth (isa/arithmetic.h).
  bool is_chain;
};

// The levels of this architecture, from the slowest to the fastest; a CPU has at least the first.
std::span<const Level> levels();

// What training needs of each of them, in their order. Not a member of Level, so that linkers can leave it out.
using TrainingTable = const TrainingKernels& (*)();
std::span<const TrainingTable> training_tables();

}  // namespace sparsight::cpu
