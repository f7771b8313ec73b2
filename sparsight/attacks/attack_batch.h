// The images that an attack starts from.
#pragma once

#include <memory>

#include "sparsight/attacks/losses.h"

namespace sparsight {

class CleanImages;

struct AttackBatch {
  at::Tensor pixels;  // [B,...] in the threat's range, fp32 or fp64; [B,C,H,W] for images
  AttackLabels labels;
  at::Tensor image = {};  // [B] int64: the number of each image in the data, which its random numbers follow from, so
                          // that neither the other images nor their order matter; undefined: 0 .. B-1

  // Shared with other selections of the batch that an attack runs on: the images as they are, and [B] int64 positions
  // in it. Attack::run sets them.
  std::shared_ptr<const CleanImages> clean = {};
  at::Tensor row = {};

  // The images at `index`, [n] int64.
  AttackBatch select(const at::Tensor& index) const;
};

}  // namespace sparsight
