// On which images an attack counts, and where it succeeded. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

struct AttackSuccess {
  at::Tensor counted;  // [B] bool: what the success rate is of
  at::Tensor reached;  // [B] bool: of these, where the attack succeeded
};

// Untargeted: of the images that are classified correctly as they are, those that no longer are. Targeted: of the
// images whose label is not the target, those that the model takes for the target, whether it did before or not.
// before, after: logits [B,K] of the images as they are and attacked; label: [B] or [B,K]; target: [B] int64, or
// undefined for an untargeted attack.
AttackSuccess attack_success(const at::Tensor& before, const at::Tensor& after, const at::Tensor& label,
                             const at::Tensor& target);

}  // namespace sparsight
