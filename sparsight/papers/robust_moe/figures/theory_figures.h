// Numerical checks of the theory of Puigcerver et al. 2022, "On the Adversarial Robustness of Mixture of Experts". The
// paper has no experiments on its theory; none of these needs a dataset. Where its printed statements are wrong, the
// printed and the corrected statement are both claims.
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

Figure gradient_bound_figure();      // robust_moe/t1: lemma 1 on a grid
Figure router_margin_figure();       // robust_moe/t2: the router's part for two experts
Figure router_radius_figure();       // robust_moe/t3: the router's part far from the origin
Figure top1_jump_figure();           // robust_moe/t4: equation 1 jumps, equation 2 does not
Figure two_experts_figure();         // robust_moe/t5: the two illustrations before theorem 1
Figure tilted_subspaces_figure();    // robust_moe/t6: theorem 1 as the experts' subspaces tilt
Figure random_bounds_figure();       // robust_moe/t7: theorem 1 on random data
Figure printed_definition_figure();  // robust_moe/t8: definition 1 as printed
Figure equal_spectra_figure();       // robust_moe/t9: repeated eigenvalues
Figure root_of_samples_figure();     // robust_moe/t10: the norm grows with the root of N
Figure root_of_experts_figure();     // robust_moe/t11: the corollary of theorem 1
Figure split_regimes_figure();       // robust_moe/t12: with and without interpolation

}  // namespace sparsight::robust_moe
