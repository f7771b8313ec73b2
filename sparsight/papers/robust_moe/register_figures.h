// Experiments on Puigcerver, Jenatton, Riquelme, Awasthi, Bhojanapalli 2022, "On the Adversarial Robustness of Mixture
// of Experts" (NeurIPS 2022, arXiv 2210.10253).
#pragma once

#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::robust_moe {

std::vector<Figure> figures();

}  // namespace sparsight::robust_moe
