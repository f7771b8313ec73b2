// Renders one image of the hierarchy dataset: a coloured shape with a fine texture on paper. Every operation is IEEE
// fp32 +, -, * or / in a fixed order and the file is compiled without fused multiply-add, so that images have the same
// bits on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/data/sets/hierarchy_textures.h"

namespace sparsight {

const std::vector<std::string>& hierarchy_colours();
const std::vector<std::string>& hierarchy_shapes();

struct HierarchyPicture {
  size_t colour = 0, shape = 0;  // indices into the lists above
  TextureTile tile{};
  int64_t shifts = kTileSide;  // different positions of the tile on each axis
  double contrast = 0.2;       // of the texture: the mean share by which it changes the colour
  double noise = 0;            // of every pixel, at most, in levels
};

// out: [3,S,S], 0..255. Position, size, colours, light, contrast, phase of the texture and noise are sampled from
// `random`. A point of the texture has max(1, S / 32) pixels.
void paint_hierarchy(const HierarchyPicture& picture, RandomStream random, int64_t side, uint8_t* out);

}  // namespace sparsight
