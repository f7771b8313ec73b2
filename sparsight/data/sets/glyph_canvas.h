// A small RGB canvas with anti-aliased strokes. Every operation is IEEE fp32 +, -, *, / or square root in a fixed order
// and the file is compiled without fused multiply-add, so that images have the same bits on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sparsight/data/sets/glyph_shapes.h"

namespace sparsight {

using Colour = std::array<float, 3>;  // red, green, blue in 0..255

// (x, y) -> (a x + b y + tx, c x + d y + ty), from the shape's square to pixels.
struct GlyphPose {
  float a = 1, b = 0, c = 0, d = 1, tx = 0, ty = 0;
  GlyphNode operator()(const GlyphNode& node) const;
};

class GlyphCanvas {
 public:
  explicit GlyphCanvas(int64_t side);

  int64_t side() const { return side_; }
  float* plane(int channel) { return planes_.data() + channel * side_ * side_; }  // [S,S], row by row

  // Draws strokes in pixel coordinates with a round pen of `radius` pixels; `opacity` 0..1.
  void draw(const std::vector<GlyphStroke>& strokes, float radius, const Colour& colour, float opacity);

  // Rounds to 0..255 into `out` [channels,S,S]; one channel receives the luma (77 R + 150 G + 29 B) / 256.
  void write(uint8_t* out, int64_t channels) const;

 private:
  void add_segment(float ax, float ay, float bx, float by, float reach);

  int64_t side_;
  std::vector<float> planes_;    // [3,S,S]
  std::vector<float> distance_;  // [S,S] squared distance in pixels to the strokes being drawn
};

}  // namespace sparsight
