// Background images of 32 x 32 pixels, in a training and a test split that share none: from a folder,
// or generated.
#pragma once

#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

inline constexpr int64_t kBackgroundSide = 32;

// [3,32,32] uint8, chosen or generated at random.
using BackgroundSampler = std::function<at::Tensor(RandomStream& random)>;

struct Backgrounds {
  BackgroundSampler train, test;
};

// The images in `folder` and its subfolders, in order of their paths, at most `limit` of them, evenly
// spaced; the centre square of each, area-averaged. Every fifth is a test image. Raises Error for fewer than two.
Backgrounds folder_backgrounds(const std::string& folder, int64_t limit);

// Textures with random strokes: synthetic substitutes for photographs.
Backgrounds generated_backgrounds(int64_t seed);

}  // namespace sparsight
