// Experiments on Daxberger et al. 2023, "Mobile V-MoEs: Scaling Down Vision Transformers via Sparse
// Mixture-of-Experts" (arXiv 2309.04354).
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::mobile_vmoe {

std::vector<Figure> figures();

}  // namespace sparsight::mobile_vmoe
