// The shapes of the glyphs dataset: pen strokes of a glyph per class and of a frame per super-class.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// A point of a stroke in the square [-0.5, 0.5]^2, x to the right, y downwards. A control point bends the line between
// its two neighbours (quadratic Bezier) and is not on the curve itself.
struct GlyphNode {
  float x = 0, y = 0;
  bool control = false;
};

using GlyphStroke = std::vector<GlyphNode>;

struct GlyphShape {
  std::string name;
  std::vector<GlyphStroke> strokes;
};

// The hand-made symbols ("arrow", "house", ...) followed by the letters A to Z.
const std::vector<GlyphShape>& hand_made_glyphs();

// `count` shapes: the hand-made ones, then as many generated ones ("g42", ...) as needed. All differ; shape i does not
// depend on the count.
std::vector<GlyphShape> glyph_shapes(int64_t count);

// The shapes around a glyph that show its super-class ("circle", "square", ...).
const std::vector<GlyphShape>& glyph_frames();

}  // namespace sparsight
