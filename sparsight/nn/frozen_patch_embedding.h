// A patch embedding for inference: packed weights, patches gathered where they are multiplied, positions added in the
// same pass, no autograd and no torch types. The bits depend neither on the number of threads nor on the batch.
// Letters: moe/axes.md; S patches of an image, P the side of one.
#pragma once

#include <cstdint>
#include <utility>

#include "sparsight/ops/cpu/packed_linear.h"

namespace sparsight {

// [B,C,H,W], H and W multiples of P; strides in floats.
struct StridedImages {
  const float* pixels = nullptr;
  int64_t images = 0, channels = 0, height = 0, width = 0;
  int64_t image_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;
};

// The token of patch s of image b, [D], is at tokens + b * image_stride + s * D.
struct PatchTokens {
  float* tokens = nullptr;
  int64_t image_stride = 0;
};

class FrozenPatchEmbedding {
 public:
  // projection: of the C * P * P values of a patch in the order (channel, row, column).
  FrozenPatchEmbedding(cpu::PackedLinear projection, int64_t patch)
      : projection_(std::move(projection)), patch_(patch) {}

  // positions: [S,D], added to the tokens, or null. Uses torch's threads.
  void run(const StridedImages& images, const float* positions, const PatchTokens& to) const;

  WeightType type() const { return projection_.type(); }

 private:
  void gather(const StridedImages& images, int64_t image, int64_t patch, float* row, int64_t block) const;

  cpu::PackedLinear projection_;
  int64_t patch_;
};

}  // namespace sparsight
