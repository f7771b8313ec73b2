#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/data_root.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::composite_test {
namespace {

using testing::complaint;
using testing::says;
using testing::TemporaryFolder;
using testing::write_mnist;

DataSplits composite(const Json& settings) { return data_sets().make("composite", settings, "data", DataContext{}); }

}  // namespace

// write_mnist: image i has the value i in its last pixel and the label i mod 10, so every cell can be identified.
TEST(CompositeSet, OneCellMakesTheLabelAndTheOthersTellNothing) {
  const TemporaryFolder folder;
  write_mnist(folder, 100);
  const DataSplits set = composite({{"root", folder.path()}, {"digits", {3, 7}}, {"train", 200}});
  EXPECT_EQ(set.train->info().classes, (std::vector<std::string>{"3", "7"}));
  EXPECT_EQ(set.train->info().super_classes, set.train->info().classes);
  EXPECT_EQ(set.train->info().super_class_of, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(set.train->info().cell_grid, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(set.train->info().height, 8);  // 4 cells of 2 x 3 pixels on a side
  EXPECT_EQ(set.train->info().width, 12);
  std::vector<int> positions(16), digits(10);
  for (int64_t i = 0; i < 200; ++i) {
    const Sample sample = set.train->get(i);
    EXPECT_EQ(sample.label, i % 2);
    const auto position = static_cast<int64_t>(sample.attributes.at(0));
    ++positions.at(static_cast<size_t>(position));
    for (int64_t cell = 0; cell < 16; ++cell) {
      const int64_t digit = sample.image[0][cell / 4 * 2 + 1][cell % 4 * 3 + 2].item<int64_t>() % 10;
      if (cell == position)
        EXPECT_EQ(digit, sample.label == 0 ? 3 : 7);
      else
        EXPECT_TRUE(digit != 3 && digit != 7);
      if (cell != position) ++digits.at(static_cast<size_t>(digit));
    }
  }
  for (const int count : positions) EXPECT_GT(count, 2);  // 12.5 expected at each of 16 positions
  for (const int digit : {0, 1, 2, 4, 5, 6, 8, 9}) EXPECT_NEAR(digits[static_cast<size_t>(digit)], 375, 75);
}

TEST(CompositeSet, LargerSetsBeginWithSmallerOnesAndPartsDiffer) {
  const DataSplits small = composite({{"cells", "glyphs"}, {"train", 4}}),
                   large = composite({{"cells", "glyphs"}, {"train", 40}}),
                   other = composite({{"cells", "glyphs"}, {"train", 4}, {"seed", 1}});
  EXPECT_EQ(small.train->get(0).image.sizes(), at::IntArrayRef({1, 112, 112}));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(small.train->get(i).image.equal(large.train->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(small.test->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(small.validation->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(other.train->get(i).image));
  }
}

TEST(CompositeSet, IsMadeOfRealDigits) {
  if (!std::filesystem::exists(data_home() + "/mnist")) GTEST_SKIP() << "no mnist/ in SPARSIGHT_DATA";
  const DataSplits set = composite({});
  EXPECT_EQ(set.train->size(), 10000);
  EXPECT_EQ(set.test->size(), 1000);
  const Sample sample = set.test->get(999);
  EXPECT_EQ(sample.image.sizes(), at::IntArrayRef({1, 112, 112}));
  EXPECT_EQ(set.test->info().classes.at(static_cast<size_t>(sample.label)), "1");
}

TEST(CompositeSet, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_mnist(folder, 9);  // no 9
  const auto message = [&](Json settings) {
    settings["root"] = folder.path();
    return complaint([&] { composite(settings); });
  };
  EXPECT_TRUE(says(message({}), "has no image of a 9"));
  EXPECT_TRUE(says(message({{"digits", {1}}}), "must name 2 to 9 of the ten digits, got 1"));
  EXPECT_TRUE(says(message({{"digits", {1, 1}}}), "names a digit twice"));
  EXPECT_TRUE(says(message({{"digits", {1, 12}}}), "12"));
  EXPECT_TRUE(says(message({{"cells", "mnst"}}), "did you mean \"mnist\""));
}

}  // namespace sparsight::composite_test
