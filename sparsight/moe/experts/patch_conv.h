// A convolution per expert on patches: each row is a whole patch, of the image or of a feature map, flattened channel
// by channel. Letters: moe/axes.md; R rows, grouped by expert; P = channels * kernel².
#pragma once

#include <torch/types.h>

namespace sparsight {

struct PatchShape {
  int64_t channels = 0, height = 0, width = 0;  // a row has channels * height * width values
};

// The square patch with `channels` channels (0: one pixel) in a row of `width` values. Raises UsageError if there is
// none.
PatchShape square_patch(int64_t channels, int64_t width);

struct PatchKernel {
  int64_t side = 0;     // square; at most the padded patch
  int64_t padding = 0;  // zeros on each edge of every patch: a patch does not see its neighbours
  int64_t stride = 1;
};

// Number of kernel positions: L.
int64_t kernel_positions(const PatchShape& patch, const PatchKernel& kernel);

// rows: [R,D], D = channels * height * width; offsets: [E+1] int64; weight: [E,P,F], P in the order (channel, row,
// column) of torch.nn.Conv2d; bias: [E,F] or undefined. Returns [R,L,F]: the map of each row, position by position.
// Differentiable once. With a kernel of the size of the patch each filter is one inner product with the patch (L = 1).
at::Tensor patch_conv(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                      const at::Tensor& bias, const PatchShape& patch, const PatchKernel& kernel);

}  // namespace sparsight
