// The figures with wide residual networks of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks": WRN against WRN-pMoE on CelebA (figures 10 to 12, table
// 2) and on CIFAR-10 and two sets made from it (figures 14 to 16), and pictures of these sets (figure 13). Where a real
// set is absent from a run's folder of data, a drawn one stands in. At scale "paper" the networks and their training
// are the paper's; "small" and "smoke" are a reduced profile: width factor 1, smaller images, fewer of them, fewer
// epochs.
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

Figure pmoe_fig10();
Figure pmoe_fig11();
Figure pmoe_fig12();
Figure pmoe_fig13();
Figure pmoe_fig14();
Figure pmoe_fig15();
Figure pmoe_fig16();
Figure pmoe_table2();

// All of them, in this order.
std::vector<Figure> pmoe_wrn_figures();

}  // namespace sparsight
