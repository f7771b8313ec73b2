// Figures and tables of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
// for Convolutional Neural Networks".
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight {

Figure pmoe_fig3();    // what a composite of digits looks like
Figure pmoe_table1();  // multiply-adds of training, counted beside the formulas
// The theorems' bounds as products of powers, their ratios, and what the paper prints differently.
Figure pmoe_bounds_table();

}  // namespace sparsight
