#include "sparsight/moe/losses/normal_cdf.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/erfc.h>

namespace sparsight {

at::Tensor normal_cdf(const at::Tensor& z) { return 0.5 * at::erfc(-std::sqrt(0.5) * z); }

at::Tensor normal_cdf(const at::Tensor& difference, const at::Tensor& scale) {
  constexpr double kMinScale = 1e-6;
  return normal_cdf(difference / scale.clamp_min(kMinScale));
}

}  // namespace sparsight
