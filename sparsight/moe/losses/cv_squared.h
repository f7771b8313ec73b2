// The squared coefficient of variation, the balance measure of Shazeer et al. 2017 (section 4) and V-MoE.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// values: [...,E]. Returns [...]: variance / mean² over the last axis; 0 with zero gradient where the mean is 0 or
// E = 1. The variance is that of the population (divided by E), or `unbiased` (by E - 1, a factor of E / (E - 1)).
at::Tensor cv_squared(const at::Tensor& values, bool unbiased = false);

}  // namespace sparsight
