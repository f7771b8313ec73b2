// The fine textures of the hierarchy dataset: tiles of 4 x 4 dark and bright points that repeat over an object.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sparsight {

inline constexpr int kTileSide = 4;

// Row by row, 1 for a bright point and -1 for a dark one; eight of each, so that no texture changes the mean colour.
using TextureTile = std::array<int8_t, kTileSide * kTileSide>;

// The smallest number of points in which the tiles differ over all shifts of one of them, with wrap-around: where a
// tile repeats, its shift is not visible. 0 for equal textures.
int texture_distance(const TextureTile& a, const TextureTile& b);

// `count` tiles of the group with this number, of which any two differ in at least kMinTextureDistance points. Tile i
// of a group does not depend on the count. count: at most kMaxTextures.
inline constexpr int kMinTextureDistance = 4;
inline constexpr int64_t kMaxTextures = 20;
std::vector<TextureTile> group_textures(int64_t group, int64_t count);

}  // namespace sparsight
