#include "sparsight/data/sets/colored_shapes.h"

#include <map>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "sparsight/data/register_data.h"

namespace sparsight::colored_shapes_test {
namespace {

using Cells = std::map<std::pair<std::string, std::string>, int64_t>;  // images by class and colour

DataSplits shapes(const Json& settings) { return data_sets().make("colored_shapes", settings, "data", DataContext{}); }

Cells list_cells(const DataSet& set) {
  Cells cells;
  for (int64_t i = 0; i < set.size(); ++i)
    ++cells[{set.info().classes[set.label(i)], set.info().domains[set.domain(i)]}];
  return cells;
}

double area(bool square, const ShapePose& pose, int64_t side) {
  return shape_coverage(square, pose, side).sum().item<double>();
}

}  // namespace

// Example 1: 90 % of the training ellipses are red, 50 % of the squares blue; the test is uniform.
TEST(ColoredShapes, ColoursGoWithShapesInTrainingAndNotInTheTest) {
  const DataSplits splits = shapes({{"train", 400}, {"validation", 40}, {"test", 80}});
  EXPECT_EQ(
      list_cells(*splits.train),
      (Cells{
          {{"ellipse", "red"}, 180}, {{"ellipse", "blue"}, 20}, {{"square", "red"}, 100}, {{"square", "blue"}, 100}}));
  EXPECT_EQ(
      list_cells(*splits.validation),
      (Cells{{{"ellipse", "red"}, 18}, {{"ellipse", "blue"}, 2}, {{"square", "red"}, 10}, {{"square", "blue"}, 10}}));
  for (const auto& [cell, images] : list_cells(*splits.test)) EXPECT_EQ(images, 20) << cell.first << " " << cell.second;
  const Cells one_colour = list_cells(*shapes({{"train", 40}, {"ellipse_red", 1}, {"square_blue", 1}}).train);
  EXPECT_EQ(one_colour, (Cells{{{"ellipse", "red"}, 20}, {{"square", "blue"}, 20}}));
}

// An image has its colour's channel alone.
TEST(ColoredShapes, ImagesHaveOneColour) {
  const DataSplits splits = shapes({{"train", 400}, {"side", 24}});
  for (int64_t i = 0; i < 400; ++i) {
    const Sample sample = splits.train->get(i);
    ASSERT_EQ(sample.image.sizes(), at::IntArrayRef({3, 24, 24}));
    EXPECT_EQ(sample.image[1].max().item<int64_t>(), 0);
    EXPECT_EQ(sample.image[sample.domain == 0 ? 2 : 0].max().item<int64_t>(), 0);
    EXPECT_EQ(sample.image.max().item<int64_t>(), 255);
  }
}

// Side 16: at scale 1 the square covers 8 - 2.88 to 8 + 2.88, all points (of eighths) of the pixels 5 to 10. At scale
// 0.5 it covers 6.56 to 9.44: two of four columns of points of the pixels 6 and 9, and all of 7 and 8.
TEST(ColoredShapes, CoverageByHand) {
  const at::Tensor whole = shape_coverage(true, {}, 16);
  EXPECT_EQ(whole.sum().item<double>(), 36);
  EXPECT_EQ(whole.narrow(0, 5, 6).narrow(1, 5, 6).min().item<double>(), 1);
  const at::Tensor half = shape_coverage(true, {.scale = 0.5}, 16);
  EXPECT_EQ(half[6][6].item<double>(), 0.25);
  EXPECT_EQ(half[6][7].item<double>(), 0.5);
  EXPECT_EQ(half[7][8].item<double>(), 1);
  EXPECT_EQ(half.sum().item<double>(), 9);
}

// Both have (0.36 side)² pixels; an ellipse twice as long as wide is 2 * 0.2872 by 2 * 0.1436 of the side.
TEST(ColoredShapes, BothShapesHaveTheSameArea) {
  EXPECT_NEAR(area(true, {}, 128), 2123.4, 30);
  EXPECT_NEAR(area(false, {}, 128), 2123.4, 30);
  for (const double x : {0.0, 1.0})  // the whole shape lies inside at the ends of the range
    EXPECT_NEAR(area(false, {.x = x, .y = 0}, 128), 2123.4, 3);
  EXPECT_NEAR(area(false, {.scale = 0.5, .cosine = 0.6, .sine = 0.8, .x = 0.1, .y = 0.9}, 128), 2123.4 / 4, 15);
  const at::Tensor flat = shape_coverage(false, {}, 128), upright = shape_coverage(false, {1, 0, 1, 0.5, 0.5}, 128);
  EXPECT_EQ((flat.sum(0) > 0).sum().item<int64_t>(), 74);  // columns 64 - 36.8 to 64 + 36.8
  EXPECT_EQ((flat.sum(1) > 0).sum().item<int64_t>(), 38);  // rows 64 - 18.4 to 64 + 18.4
  EXPECT_TRUE(at::equal(flat.t(), upright));
}

// A smaller set is the beginning of a larger one; splits and seeds differ; the bits are those of any machine, so the
// hash is that of the first run of this code.
TEST(ColoredShapes, FollowFromSeedSplitAndNumber) {
  const DataSplits small = shapes({{"train", 20}, {"test", 20}}), large = shapes({{"train", 60}}),
                   other = shapes({{"train", 20}, {"seed", 1}});
  uint64_t hash = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const at::Tensor image = small.train->get(i).image;
    EXPECT_TRUE(at::equal(image, large.train->get(i).image));
    EXPECT_FALSE(at::equal(image, other.train->get(i).image));
    EXPECT_FALSE(at::equal(image, small.test->get(i).image));
    const uint8_t* const bytes = image.const_data_ptr<uint8_t>();
    for (int64_t b = 0; b < image.numel(); ++b) hash = hash_combine(hash, bytes[b]);
  }
  EXPECT_EQ(hash, 833201593901342449u);
}

}  // namespace sparsight::colored_shapes_test
