// Which part of a picture a model sees, to draw patches over it.
#pragma once

#include <array>

#include "sparsight/engine/preprocess.h"

namespace sparsight::serve {

// [left, top, width, height] in pixels of a picture of that size, from the resizes and crops of its preprocessing.
std::array<double, 4> visible_region(const engine::Preprocessing& preprocessing, int64_t width, int64_t height);

}  // namespace sparsight::serve
