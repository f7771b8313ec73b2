// Resamples a learned position embedding to another patch grid.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct PatchGrid {
  int64_t height = 0, width = 0;  // patches
  bool operator==(const PatchGrid&) const = default;
};

enum class Resampling {
  bicubic,  // antialiased, as timm's resample_abs_pos_embed does
  linear,   // separable, with aligned corners: output i is at i (n_in - 1) / (n_out - 1) of the input (V-MoE). The
            // corners stay as they are
};

// embedding: [1, prefix + from.height * from.width, D]. Returns [1, prefix + to.height * to.width, D] of its type: the
// prefix unchanged, the rest interpolated in fp32 (fp64 for fp64). Raises Error where the sizes do not match.
at::Tensor resample_position_embedding(const at::Tensor& embedding, int64_t prefix, PatchGrid from, PatchGrid to,
                                       Resampling resampling = Resampling::bicubic);

}  // namespace sparsight
