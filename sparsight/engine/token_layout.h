// How the tokens of a batch are arranged in images. Letters: moe/axes.md.
#pragma once

#include <cstdint>

namespace sparsight {

// How the N tokens of a batch are arranged in images, so that a routing can be shown as a picture.
struct TokenLayout {
  int64_t images = 0;       // B
  int64_t per_image = 0;    // S; B * S = N
  int64_t prefix = 0;       // leading tokens of each image that are not patches (class token)
  int64_t grid_height = 0;  // patches; grid_height * grid_width = S - prefix, or 0 where tokens have no grid
  int64_t grid_width = 0;
};

}  // namespace sparsight
