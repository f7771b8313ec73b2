// The classes that targeted attacks move an image to: those that the model finds most likely after its first choice.
#pragma once

#include "sparsight/attacks/attack_batch.h"

namespace sparsight {

// The classes of `logits` [B,K] in descending order of the logits, ties by the lower class, without the first one:
// [B,n] int64, n = min(wanted, K - 1). label: [B] int64, the classes to leave out instead, which differ from the first
// ones where images are misclassified already and stay only because others need them; undefined: the first ones.
at::Tensor target_classes(const at::Tensor& logits, int64_t wanted, const at::Tensor& label = {});

// The same images with column `rank` of `targets` [B,n].
AttackBatch with_target(AttackBatch batch, const at::Tensor& targets, int64_t rank);

}  // namespace sparsight
