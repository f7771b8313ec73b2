#include "sparsight/moe/experts/patch_conv.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight {
namespace {

int64_t positions(int64_t side, const PatchKernel& kernel) {
  return (side + 2 * kernel.padding - kernel.side) / kernel.stride + 1;
}

// [R,D] -> [R*L,P]: the kernel's window at each position.
at::Tensor windows(const at::Tensor& rows, const PatchShape& patch, const PatchKernel& kernel) {
  if (kernel.side == patch.height && kernel.side == patch.width && kernel.padding == 0) return rows;
  const at::Tensor maps = rows.view({rows.size(0), patch.channels, patch.height, patch.width});
  const at::Tensor columns = at::im2col(maps, {kernel.side, kernel.side}, {1, 1}, {kernel.padding, kernel.padding},
                                        {kernel.stride, kernel.stride});  // [R,P,L]
  return columns.transpose(1, 2).reshape({-1, columns.size(1)});
}

}  // namespace

PatchShape square_patch(int64_t channels, int64_t width) {
  if (channels == 0) channels = width;
  const int64_t pixels = width / channels;
  const int64_t side = width % channels == 0 ? std::llround(std::sqrt(static_cast<double>(pixels))) : 0;
  if (side * side * channels != width)
    fail_usage("[experts] channels = ", channels, ": a row of ", width,
               " values is not a square patch with that many channels; choose channels so that ", width,
               " / channels is a square number, or 0 for a patch of one pixel");
  return {channels, side, side};
}

int64_t kernel_positions(const PatchShape& patch, const PatchKernel& kernel) {
  return positions(patch.height, kernel) * positions(patch.width, kernel);
}

at::Tensor patch_conv(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                      const at::Tensor& bias, const PatchShape& patch, const PatchKernel& kernel) {
  SPARSIGHT_CHECK(rows.dim() == 2 && rows.size(1) == patch.channels * patch.height * patch.width);
  SPARSIGHT_CHECK(weight.dim() == 3 && weight.size(1) == patch.channels * kernel.side * kernel.side);
  const int64_t count = kernel_positions(patch, kernel);
  const at::Tensor maps = grouped_linear(windows(rows, patch, kernel), offsets * count, weight, bias);  // [R*L,F]
  return maps.view({rows.size(0), count, weight.size(2)});
}

}  // namespace sparsight
