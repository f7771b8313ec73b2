// Transfer attacks: the adversarial images of one model evaluated on another, such as dense models and mixtures of
// experts. A white-box attack that is weaker than a transferred one is not to be trusted.
#pragma once

#include "sparsight/attacks/attack.h"

namespace sparsight {

struct TransferResult {
  AttackResult source;        // of the attack on the model that gave the gradients
  at::Tensor target_clean;    // [B] bool: whether the other model classifies the clean images correctly
  at::Tensor target_correct;  // [B] bool: whether it does so with the adversarial images

  // The share that the target gets wrong among the images that it gets right when clean; 0 without any.
  double success_rate() const;
};

// Raises Error for models that take pixels of different ranges.
TransferResult transfer(const Attack& attack, AttackedModel& source, AttackedModel& target, const AttackBatch& batch);

}  // namespace sparsight
