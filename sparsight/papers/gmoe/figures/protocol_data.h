// The images that the figures by DomainBed's protocol generate, below their run folder: once, whichever of the
// processes that run jobs needs them first.
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

// Images as of `sparsight data make --layout domain`.
struct GlyphDomains {
  int64_t classes = 12, distractors = 4, side = 32, images = 300;  // images of each domain
};
const std::vector<std::string>& glyph_environments();  // in byte order, which is that of the environments
std::string glyph_domains(const GlyphDomains& glyphs, const FigureRun& run);

// Glyphs in the files of MNIST: a substitute of `images` training images, and a sixth as many for the test.
std::string glyph_mnist(int64_t images, const FigureRun& run);

}  // namespace sparsight::gmoe
