// Checks saved adversarial images as anyone would who only has them: read from the disk, they must be what the threat
// model allows, and the model must still misclassify them.
#pragma once

#include "sparsight/attacks/run/attack_shard.h"

namespace sparsight {

struct PieceCheck {
  double largest_norm = 0, lowest = 0, highest = 0;  // of the perturbations, of the pixels
  at::Tensor misclassified;                          // [B] bool: by a pass over the saved pixels; as the target of a
                                                     // targeted attack
  at::Tensor misclassified_in_8_bits;                // [B] bool: after rounding to 255ths, as in a PNG
};

// images: as read from the dataset. Raises Error if they are not those that were attacked, and for saved images beyond
// epsilon (1 + 1e-6), not finite, or, if `clipped`, out of 0..1.
PieceCheck check_piece(AttackedModel& model, const AttackedBatch& images, const AttackShard& piece,
                       const ThreatModel& threat, bool clipped, int64_t batch_size);

}  // namespace sparsight
