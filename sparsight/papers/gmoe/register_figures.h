// Experiments on Li, Shen, Yang, Wang, Ren, Che, Zhang, Liu 2023, "Sparse Mixture-of-Experts are Domain Generalizable
// Learners" (ICLR 2023, arXiv 2206.04046).
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

std::vector<Figure> figures();

}  // namespace sparsight::gmoe
