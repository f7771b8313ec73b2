#include "sparsight/nn/patches.h"

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor image_patches(const at::Tensor& images, int64_t side) {
  const int64_t batch = images.size(0), channels = images.size(1), rows = images.size(2) / side,
                columns = images.size(3) / side;
  SPARSIGHT_CHECK(rows * side == images.size(2) && columns * side == images.size(3));
  return images.reshape({batch, channels, rows, side, columns, side})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({batch, rows * columns, channels * side * side});
}

at::Tensor patches_to_images(const at::Tensor& patches, int64_t side, int64_t height, int64_t width) {
  const int64_t batch = patches.size(0), rows = height / side, columns = width / side,
                channels = patches.size(2) / (side * side);
  SPARSIGHT_CHECK(patches.size(1) == rows * columns && patches.size(2) == channels * side * side);
  return patches.reshape({batch, rows, columns, channels, side, side})
      .permute({0, 3, 1, 4, 2, 5})
      .reshape({batch, channels, height, width});
}

}  // namespace sparsight
