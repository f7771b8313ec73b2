// The squared coefficient of variation, the balance measure of Shazeer et al. 2017 (section 4) and V-MoE.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// values: [E]. Returns []: population variance / mean²; 0 with zero gradient where the mean is 0.
at::Tensor cv_squared(const at::Tensor& values);

}  // namespace sparsight
