// What a curve of robust accuracy over epsilon says about the attack itself (Athalye et al. 2018; Carlini et al. 2019,
// "On Evaluating Adversarial Robustness"): what a smaller perturbation fools a larger one may fool too, and a large
// enough one fools everything. An attack whose curve does otherwise is too weak, or gradients are masked.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// The attack at one epsilon.
struct CurveAttack {
  std::string given;       // the epsilon as it was given: "8/255"
  double epsilon = 0;      // of pixels in 0..1
  bool gradients = false;  // some of its stages have them
  at::Tensor robust;       // [n] bool: classified correctly before and after; of a targeted attack: not its target
};

// From where on every image can be made grey, half of the range of each pixel away: 0.5 for linf, 0.5 sqrt(values) for
// l2, 0.5 values for l1. values: of an image's pixels and channels.
double large_epsilon(Norm norm, int64_t values);

// attacks: at least two, of the same n images, by ascending epsilon. Warns where significantly more images are robust
// at a larger epsilon than at the one before (McNemar, p < 0.05), where no fewer are robust at the largest than at the
// smallest, and where more than 1 % withstand an attack with gradients of at least `large`. The last does not hold of a
// `targeted` one: no grey image need be of the target.
std::vector<std::string> curve_warnings(const std::vector<CurveAttack>& attacks, double large, bool targeted = false);

}  // namespace sparsight
