// The figures and tables of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably
// Sample-efficient for Convolutional Neural Networks", and the experiments that check its theory.
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

std::vector<Figure> figures();

}  // namespace sparsight::pmoe
