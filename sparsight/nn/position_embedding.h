// Resamples a learned position embedding to another patch grid, as timm's resample_abs_pos_embed does.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct PatchGrid {
  int64_t height = 0, width = 0;  // patches
  bool operator==(const PatchGrid&) const = default;
};

// embedding: [1, prefix + from.height * from.width, D]. Returns [1, prefix + to.height * to.width, D] of its type: the
// prefix unchanged, the rest by antialiased bicubic interpolation in fp32. Raises Error where the sizes do not match.
at::Tensor resample_position_embedding(const at::Tensor& embedding, int64_t prefix, PatchGrid from, PatchGrid to);

}  // namespace sparsight
