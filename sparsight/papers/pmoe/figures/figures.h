// Figures and tables of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
// for Convolutional Neural Networks".
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

Figure fig3();       // what a composite of digits looks like
Figure fig4();       // accuracy against samples
Figure fig4_code();  // the same with the constants of the paper's code
Figure fig5();       // success against samples and patches taken, separate training
Figure fig6();       // accuracy against experts, joint training
Figure fig7();       // accuracy against patches taken, joint training
Figure fig8();       // what separately trained routers find
Figure fig9();       // what jointly trained routers find
Figure table1();     // multiply-adds of training, counted beside the formulas
// The theorems' bounds as products of powers, their ratios, and what the paper prints differently.
Figure bounds_table();

}  // namespace sparsight::pmoe
