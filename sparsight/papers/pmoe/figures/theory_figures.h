// Numerical checks of the theory of patch routing on samples of its distribution: Chowdhury et al. 2023,
// "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks". None of
// these needs a dataset. The theorems are sufficient conditions (the paper's footnote 4), so the claims are about
// orders and directions, not about exponents of sample sizes.
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

Figure router_mean_figure();           // pmoe/t1: lemma E.1
Figure router_start_figure();          // pmoe/t2: lemma E.2
Figure router_spread_figure();         // pmoe/t3: concentration in appendix E
Figure router_rates_figure();          // pmoe/t4: lemmas 4.1 and E.3
Figure value_bounds_figure();          // pmoe/t5: the value function of appendix G
Figure activation_stability_figure();  // pmoe/t6: lemmas G.1, H.1 and I.1
Figure large_gradients_figure();       // pmoe/t7: lemmas G.2, G.3, H.2, H.3, I.2 and I.3
Figure descent_figure();               // pmoe/t8: lemmas G.4, H.4 and I.4
Figure assumption_figure();            // pmoe/t9: assumption 4.4
Figure linear_classifier_figure();     // pmoe/t10: appendix K.1
std::vector<Figure> sample_figures();  // pmoe/t11_l, _n, _delta_d, _delta_r, _p, _k: theorems 4.2, 4.3 and 4.5
Figure spurious_figure();              // pmoe/spurious: a feature that is only correlated with the label

}  // namespace sparsight::pmoe
