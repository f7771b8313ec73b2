// The last check of an attack: the images are what the threat model allows. A violation is a bug of the attack.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// The largest ||x' - x|| of the images, in fp64. x: [B,...].
double largest_perturbation(const at::Tensor& perturbed, const at::Tensor& x, Norm norm);

// Fails an internal check unless every number is finite, every perturbation is at most epsilon * (1 + 1e-6) and, if
// `in_pixel_range`, every pixel is in threat.range.
void check_perturbation(const at::Tensor& perturbed, const at::Tensor& x, const ThreatModel& threat,
                        bool in_pixel_range);

}  // namespace sparsight
