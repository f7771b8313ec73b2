// On which images an attack counts, and where it succeeded. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// [B] bool: the images that the success rate is of: those that are classified correctly as they are, [B] bool, or of a
// targeted attack those whose label is not the target. label: [B] or [B,K]; target: [B] int64, or undefined for an
// untargeted attack.
at::Tensor counted_images(const at::Tensor& correct, const at::Tensor& label, const at::Tensor& target);

struct AttackSuccess {
  at::Tensor counted;  // [B] bool: counted_images()
  at::Tensor reached;  // [B] bool: of these, where the attack succeeded
};

// Untargeted: of the images that are classified correctly as they are, those that no longer are. Targeted: of the
// images whose label is not the target, those that the model takes for the target, whether it did before or not.
// before, after: logits [B,K] of the images as they are and attacked; label: [B] or [B,K]; target: [B] int64, or
// undefined for an untargeted attack.
AttackSuccess attack_success(const at::Tensor& before, const at::Tensor& after, const at::Tensor& label,
                             const at::Tensor& target);

}  // namespace sparsight
