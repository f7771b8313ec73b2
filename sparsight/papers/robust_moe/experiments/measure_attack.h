// Everything that is measured of one attack on one model (Puigcerver et al. 2022, section 4): errors, losses, costs,
// and what happens to the routing of each MoE layer. Letters: moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/attacks/attack.h"
#include "sparsight/models/image_model.h"

namespace sparsight::robust_moe {

struct MeasuredAttack {
  std::shared_ptr<const Attack> attack;
  bool losses = false;  // its objective has router losses, which the model then computes
  int64_t batch = 128;  // images that are attacked together
  uint64_t seed = 0;    // of experts at random, for the redundancy of outputs
};

// The attack runs in evaluation mode: no router noise. Errors and rates are in percent of all images, of which
// misclassified ones count as errors:
//   images, clean_error, robust_error with its 95 % Wilson interval (robust_low, robust_high), success (of the images
//   that were classified correctly), changed (other prediction), clean_loss, attacked_loss (cross entropy), queries and
//   gradients per image, largest (perturbation, in 255ths of the pixel range)
// clean_correct (images that were), outcomes (clean_error and robust_error of each image, "0110...")
// and "layers", a list with
//   what AttackedRouting::layers() says (change, chance, entropy, ...), redundancy and redundancy_random (distance of
//   the outputs where experts changed; analysis/output_redundancy.h)
// A dense model has none. For single-label images the false discovery rate is the error.
Json measure_attack(const std::shared_ptr<ImageModel>& model, const AttackBatch& images, const MeasuredAttack& how);

}  // namespace sparsight::robust_moe
