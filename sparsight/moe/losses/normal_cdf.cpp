#include "sparsight/moe/losses/normal_cdf.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/erfc.h>

namespace sparsight {

at::Tensor normal_cdf(const at::Tensor& z) { return 0.5 * at::erfc(-std::sqrt(0.5) * z); }

}  // namespace sparsight
