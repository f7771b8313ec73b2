// The algorithms of domain generalisation.
#pragma once

#include "sparsight/train/algorithm.h"

namespace sparsight {

// Adds them to a list. sparsight::main() does so with algorithms(); a program without it that trains with them calls
// this once, before it reads a configuration.
void register_domain_algorithms(AlgorithmRegistry& list);

}  // namespace sparsight
