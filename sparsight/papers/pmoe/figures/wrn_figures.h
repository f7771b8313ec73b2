// The figures with wide residual networks of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks": WRN against WRN-pMoE on CelebA (figures 10 to 12, table
// 2) and on CIFAR-10 and two sets made from it (figures 14 to 16), and pictures of these sets (figure 13). At scale
// "paper" the networks and their training are the paper's.
// Differs from the paper: a dataset that is missing from the run's data folder is replaced by a synthetic substitute,
// and scales "small" and "smoke" are a reduced profile: widening factor 1, fewer and smaller images, fewer epochs.
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

Figure fig10();
Figure fig11();
Figure fig12();
Figure fig13();
Figure fig14();
Figure fig15();
Figure fig16();
Figure table2();

// All of them, in this order.
std::vector<Figure> wrn_figures();

}  // namespace sparsight::pmoe
