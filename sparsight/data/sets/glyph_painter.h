// Renders one image of the glyphs dataset: background, distractors, frame, glyph, grain.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/data/sets/glyph_canvas.h"

namespace sparsight {

// The rendering domains: ink on plain paper, ink on a texture, repeated thin pencil lines, bright ink on dark.
const std::vector<std::string>& glyph_domains();

struct GlyphPicture {
  const GlyphShape* glyph = nullptr;
  const GlyphShape* frame = nullptr;  // or none; the glyph is then larger
  std::string domain = "clean";
  int64_t distractors = 0;  // maximum number of pieces of other glyphs
};

// Everything that varies (pose, wobble, pen, colours, texture, distractors, grain) is sampled from `random`.
void paint_glyph(const GlyphPicture& picture, RandomStream random, GlyphCanvas& canvas);

}  // namespace sparsight
