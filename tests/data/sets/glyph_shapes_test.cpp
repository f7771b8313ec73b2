#include "sparsight/data/sets/glyph_shapes.h"

#include <set>

#include <gtest/gtest.h>

namespace sparsight::glyph_shapes_test {
namespace {

std::vector<float> numbers(const GlyphShape& shape) {
  std::vector<float> flat;
  for (const GlyphStroke& stroke : shape.strokes)
    for (const GlyphNode& node : stroke) flat.insert(flat.end(), {node.x, node.y, node.control ? 1.f : 0.f});
  return flat;
}

}  // namespace

TEST(GlyphShapes, ParsesAPath) {  // "L" is M10 L18 L78 on a grid of 0..8: (1/8 - 1/2, 0 - 1/2), ...
  for (const GlyphShape& shape : hand_made_glyphs()) {
    if (shape.name != "L") continue;
    EXPECT_EQ(numbers(shape), (std::vector<float>{-0.375f, -0.5f, 0, -0.375f, 0.5f, 0, 0.375f, 0.5f, 0}));
    return;
  }
  FAIL() << "there is no glyph L";
}

TEST(GlyphShapes, AllDifferInNameAndForm) {
  std::set<std::string> names;
  std::set<std::vector<float>> forms;
  for (const GlyphShape& shape : glyph_shapes(1000)) {
    names.insert(shape.name);
    forms.insert(numbers(shape));
  }
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_EQ(forms.size(), 1000u);
}

TEST(GlyphShapes, ShapeDoesNotDependOnTheCount) {
  const auto few = glyph_shapes(60), many = glyph_shapes(90);
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(numbers(few[i]), numbers(many[i])) << i;
}

TEST(GlyphShapes, CurvesLieBetweenPoints) {
  std::vector<GlyphShape> shapes = glyph_shapes(200);
  shapes.insert(shapes.end(), glyph_frames().begin(), glyph_frames().end());
  for (const GlyphShape& shape : shapes) {
    for (const GlyphStroke& stroke : shape.strokes) {
      ASSERT_GE(stroke.size(), 2u) << shape.name;
      EXPECT_FALSE(stroke.front().control || stroke.back().control) << shape.name;
      for (size_t i = 1; i < stroke.size(); ++i) EXPECT_FALSE(stroke[i].control && stroke[i - 1].control) << shape.name;
    }
  }
}

}  // namespace sparsight::glyph_shapes_test
