// The images that an attack starts from.
#pragma once

#include "sparsight/attacks/losses.h"

namespace sparsight {

struct AttackBatch {
  at::Tensor pixels;  // [B,...] in the threat's range, fp32 or fp64; [B,C,H,W] for images
  AttackLabels labels;
  at::Tensor image = {};  // [B] int64: the number of each image in the data, which its random numbers follow from, so
                          // that neither the other images nor their order matter; undefined: 0 .. B-1

  // The images at `index`, [n] int64.
  AttackBatch select(const at::Tensor& index) const;
};

}  // namespace sparsight
