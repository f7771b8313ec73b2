#include "sparsight/attacks/check_perturbation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>

#include "sparsight/attacks/per_image.h"
#include "sparsight/core/error.h"

namespace sparsight {

double largest_perturbation(const at::Tensor& perturbed, const at::Tensor& x, Norm norm) {
  if (x.numel() == 0) return 0;
  return image_norms(perturbed.to(at::kDouble) - x.to(at::kDouble), norm).max().item<double>();
}

void check_perturbation(const at::Tensor& perturbed, const at::Tensor& x, const ThreatModel& threat,
                        bool in_pixel_range) {
  SPARSIGHT_CHECK(perturbed.sizes() == x.sizes() && perturbed.scalar_type() == x.scalar_type());
  if (x.numel() == 0) return;
  SPARSIGHT_CHECK(at::isfinite(perturbed).all().item<bool>());
  // x +- epsilon is rounded to 1e-16 of the pixel, in fp64.
  SPARSIGHT_CHECK(largest_perturbation(perturbed, x, threat.norm) <=
                  threat.epsilon * (1 + 1e-6) + 1e-15 * threat.range.width());
  if (!in_pixel_range) return;
  SPARSIGHT_CHECK(perturbed.min().item<double>() >= threat.range.low);
  SPARSIGHT_CHECK(perturbed.max().item<double>() <= threat.range.high);
}

}  // namespace sparsight
