// Experiments on the theory of Li et al. 2023, "Sparse Mixture-of-Experts are Domain Generalizable Learners". None
// needs a dataset. The paper's own synthetic experiment is in an appendix that was not available: these are of our
// design.
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

Figure aligned_pooling_figure();    // gmoe/t1: theorem 1, the pooling decides which correlation is learned
Figure branch_experts_figure();     // gmoe/t2: theorem 2, a program of four branches against the number of experts
Figure module_alignment_figure();   // gmoe/t3: theorem 2 and remark 3, computed
Figure sample_complexity_figure();  // gmoe/t4: the sample complexity of a linear target

}  // namespace sparsight::gmoe
