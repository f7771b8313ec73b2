#include "sparsight/data/sets/hierarchy_textures.h"

#include <algorithm>

#include "sparsight/core/random.h"

namespace sparsight {
namespace {

TextureTile random_tile(RandomStream& random) {
  TextureTile tile;
  for (size_t i = 0; i < tile.size(); ++i) tile[i] = i < tile.size() / 2 ? 1 : -1;
  for (size_t i = tile.size() - 1; i > 0; --i)
    std::swap(tile[i], tile[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
  return tile;
}

}  // namespace

int texture_distance(const TextureTile& a, const TextureTile& b) {
  int least = kTileSide * kTileSide;
  for (int down = 0; down < kTileSide; ++down)
    for (int across = 0; across < kTileSide; ++across) {
      int differing = 0;
      for (int y = 0; y < kTileSide; ++y)
        for (int x = 0; x < kTileSide; ++x)
          differing += a[y * kTileSide + x] != b[(y + down) % kTileSide * kTileSide + (x + across) % kTileSide];
      least = std::min(least, differing);
    }
  return least;
}

std::vector<TextureTile> group_textures(int64_t group, int64_t count) {
  RandomStream random(0, "hierarchy.textures", static_cast<uint64_t>(group));
  std::vector<TextureTile> tiles;
  while (static_cast<int64_t>(tiles.size()) < count) {
    const TextureTile tile = random_tile(random);
    const auto differs = [&](const TextureTile& other) { return texture_distance(tile, other) >= kMinTextureDistance; };
    if (std::all_of(tiles.begin(), tiles.end(), differs)) tiles.push_back(tile);
  }
  return tiles;
}

}  // namespace sparsight
