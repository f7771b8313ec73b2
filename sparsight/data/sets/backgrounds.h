// Background images of 32 x 32 pixels, in a training and a test split that share none: of a folder,
// or drawn.
#pragma once

#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

inline constexpr int64_t kBackgroundSide = 32;

// [3,32,32] uint8, chosen or drawn at random.
using DrawBackground = std::function<at::Tensor(RandomStream& random)>;

struct Backgrounds {
  DrawBackground train, test;
};

// The JPEG and PNG files in `folder` and below it, in order of their paths, at most `limit` of them, evenly spread; the
// square in the middle of each, area-averaged. Every fifth belongs to the test split. Raises Error for fewer than two.
Backgrounds folder_backgrounds(const std::string& folder, int64_t limit);

// Textures with random strokes: synthetic substitutes for photographs.
Backgrounds drawn_backgrounds(int64_t seed);

}  // namespace sparsight
