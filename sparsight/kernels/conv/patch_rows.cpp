#include "sparsight/kernels/conv/patch_rows.h"

#include <algorithm>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

void gather_patch(const StridedImages& images, int64_t side, int64_t image, int64_t patch, float* row, int64_t block) {
  const int64_t across = images.width / side;
  const float* const corner = images.pixels + image * images.image_stride + patch / across * side * images.row_stride +
                              patch % across * side * images.column_stride;
  int64_t value = 0;
  for (int64_t channel = 0; channel < images.channels; ++channel)
    for (int64_t y = 0; y < side; ++y) {
      const float* from = corner + channel * images.channel_stride + y * images.row_stride;
      for (int64_t left = side; left > 0;) {
        const int64_t count = std::min(left, kBlock - value % kBlock);
        float* const to = row + value / kBlock * block + value % kBlock;
        if (images.column_stride == 1)
          std::copy_n(from, count, to);
        else
          for (int64_t i = 0; i < count; ++i) to[i] = from[i * images.column_stride];
        from += count * images.column_stride, value += count, left -= count;
      }
    }
}

void scatter_patch(const float* row, const StridedImages& images, int64_t side, int64_t image, int64_t patch,
                   float* pixels) {
  const int64_t across = images.width / side;
  float* const corner = pixels + image * images.channels * images.height * images.width +
                        patch / across * side * images.width + patch % across * side;
  for (int64_t channel = 0; channel < images.channels; ++channel)
    for (int64_t y = 0; y < side; ++y, row += side)
      std::copy_n(row, side, corner + (channel * images.height + y) * images.width);
}

}  // namespace sparsight::cpu
