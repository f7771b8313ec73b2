// Figures and tables of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
// for Convolutional Neural Networks".
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

Figure fig3();       // sample images of a composite of digits
Figure fig4();       // accuracy against samples
Figure fig4_code();  // the same with the constants of the paper's code
Figure fig5();       // successful trials against samples and patches taken, separate training
Figure fig6();       // accuracy against experts, joint training
Figure fig7();       // accuracy against patches per expert, joint training
Figure fig8();       // how often separately trained routers find the cell
Figure fig9();       // how often jointly trained routers find the cell
// How many samples separately trained routers need, of those that the experts are trained on.
Figure router_samples_figure();
Figure table1();  // multiply-adds of training, formulas and counts
// The theorems' bounds as products of powers, their ratios, and what the paper prints differently.
Figure bounds_table();

}  // namespace sparsight::pmoe
