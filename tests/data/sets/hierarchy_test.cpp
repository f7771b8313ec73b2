#include "sparsight/data/sets/hierarchy.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sparsight/core/random.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/hierarchy_painter.h"
#include "tests/support/errors.h"

namespace sparsight::hierarchy_test {
namespace {

DataSplits hierarchy(const Json& settings) { return data_sets().make("hierarchy", settings, "data", DataContext{}); }

std::vector<uint8_t> bytes(const at::Tensor& image) {
  const uint8_t* data = image.const_data_ptr<uint8_t>();
  return {data, data + image.numel()};
}

std::string error_text(const Json& settings) {
  return testing::error_text<UsageError>([&] { hierarchy(settings); });
}

// The 4 x 4 points in the middle of an object, each bright or dark against their mean.
TextureTile middle_tile(const at::Tensor& image) {
  const at::Tensor block = image[1].slice(0, 14, 18).slice(1, 14, 18).to(at::kFloat);
  const at::Tensor bright = block.gt(block.mean()).contiguous();
  TextureTile tile;
  for (size_t i = 0; i < tile.size(); ++i) tile[i] = bright.const_data_ptr<bool>()[i] ? 1 : -1;
  return tile;
}

TEST(Hierarchy, DescribesItself) {
  const DataSplits splits = hierarchy({{"train", 40}, {"test", 7}, {"side", 20}});
  const DataInfo& info = splits.train->info();
  EXPECT_EQ(info.name, "hierarchy");
  ASSERT_EQ(info.classes.size(), 50u);
  ASSERT_EQ(info.super_classes.size(), 10u);
  EXPECT_EQ(std::set<std::string>(info.super_classes.begin(), info.super_classes.end()).size(), 10u);
  EXPECT_EQ(info.super_classes[0], "red disc");
  EXPECT_EQ(info.super_classes[9], "blue pillar");  // 4 colours: group 9 has colour 1 and shape 2
  EXPECT_EQ(info.classes[49], "blue pillar 4");
  for (int64_t k = 0; k < 50; ++k) EXPECT_EQ(info.super_class_of[static_cast<size_t>(k)], k / 5);
  EXPECT_EQ(splits.test->size(), 7);
  const Sample sample = splits.train->get(13);
  EXPECT_EQ(sample.image.sizes(), (std::vector<int64_t>{3, 20, 20}));
  EXPECT_EQ(sample.image.scalar_type(), at::kByte);
  EXPECT_EQ(sample.id, "train/13");
  EXPECT_EQ(sample.label, 13);
}

TEST(Hierarchy, EveryGroupHasItsOwnColourAndShapeUpToTheMost) {
  const DataSplits splits = hierarchy({{"groups", 48}, {"classes_per_group", 2}, {"train", 96}});
  const auto& names = splits.train->info().super_classes;
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 48u);
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < 96; ++i) ++counts[splits.train->get(i).label];
  EXPECT_EQ(counts.size(), 96u);
}

TEST(Hierarchy, PictureIsAPureFunctionOfSeedSplitAndIndex) {
  const DataSplits one = hierarchy({{"train", 60}}), longer = hierarchy({{"train", 90}}),
                   other = hierarchy({{"seed", 1}});
  EXPECT_EQ(bytes(one.train->get(41).image), bytes(longer.train->get(41).image));
  EXPECT_NE(bytes(one.train->get(41).image), bytes(other.train->get(41).image));
  EXPECT_NE(bytes(one.train->get(4).image), bytes(one.test->get(4).image));
  EXPECT_NE(bytes(one.train->get(4).image), bytes(one.train->get(54).image));  // the same class
}

// The numbers were printed by this test on x86-64 with g++ 12; they change only if the rendering is changed
// deliberately, which makes it another dataset.
TEST(Hierarchy, SameBitsOnEveryMachine) {
  const auto fingerprint = [](const DataSet& set) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < set.size(); ++i)
      for (const uint8_t byte : bytes(set.get(i).image)) hash = hash_combine(hash, byte);
    return hash;
  };
  EXPECT_EQ(fingerprint(*hierarchy({{"test", 100}}).test), 2360711687542269955u);
  EXPECT_EQ(fingerprint(*hierarchy({{"test", 96}, {"groups", 48}, {"side", 64}, {"noise", 8.0}}).test),
            10396730034133426323u);
}

// Two tiles that are shifts of each other are the same texture. One point moved to another place: two points differ.
TEST(HierarchyTextures, DistanceIsOverAllShifts) {
  const TextureTile rows{1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1};
  const TextureTile shifted{-1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1};
  const TextureTile columns{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
  TextureTile moved = rows;
  moved[0] = -1, moved[4] = 1;
  EXPECT_EQ(texture_distance(rows, rows), 0);
  EXPECT_EQ(texture_distance(rows, shifted), 0);
  EXPECT_EQ(texture_distance(rows, columns), 8);
  EXPECT_EQ(texture_distance(rows, moved), 2);
}

TEST(HierarchyTextures, ThoseOfAGroupDifferAndAreBalanced) {
  for (const int64_t group : {0, 7, 47}) {
    const std::vector<TextureTile> tiles = group_textures(group, kMaxTextures);
    ASSERT_EQ(std::ssize(tiles), kMaxTextures);
    for (size_t a = 0; a < tiles.size(); ++a) {
      int sum = 0;
      for (const int8_t point : tiles[a]) sum += point;
      EXPECT_EQ(sum, 0);
      for (size_t b = 0; b < a; ++b) EXPECT_GE(texture_distance(tiles[a], tiles[b]), kMinTextureDistance);
    }
    EXPECT_EQ(group_textures(group, 3)[2], tiles[2]);
  }
}

// Without noise the points in the middle of a disc (group 0) are its class's tile at some shift.
TEST(Hierarchy, TheTextureIsThatOfTheClass) {
  const DataSplits splits = hierarchy({{"noise", 0.0}, {"train", 500}, {"shifts", 4}});
  const std::vector<TextureTile> tiles = group_textures(0, 5);
  for (int64_t i = 0; i < 500; ++i) {
    const int64_t label = splits.train->label(i);
    if (label >= 5) continue;
    EXPECT_EQ(texture_distance(middle_tile(splits.train->get(i).image), tiles[static_cast<size_t>(label)]), 0) << i;
  }
}

// The points that a tile begins with are those at pixel (0, 0) of the image if there is one shift only: everywhere the
// same pixels are bright.
TEST(Hierarchy, WithOneShiftTheTextureIsAlignedWithTheImage) {
  const DataSplits splits = hierarchy({{"noise", 0.0}, {"train", 500}, {"shifts", 1}});
  const TextureTile tile = group_textures(0, 5)[3];
  TextureTile in_the_middle;  // pixel 14 is point 2 of a tile
  for (int y = 0; y < kTileSide; ++y)
    for (int x = 0; x < kTileSide; ++x)
      in_the_middle[static_cast<size_t>(y * kTileSide + x)] =
          tile[static_cast<size_t>((y + 2) % kTileSide * kTileSide + (x + 2) % kTileSide)];
  for (int64_t i = 3; i < 500; i += 50) EXPECT_EQ(middle_tile(splits.train->get(i).image), in_the_middle) << i;
}

// Mean over objects: where a group is red, its red is above its blue; a bar is as wide as a disc, and half as high.
TEST(Hierarchy, GroupsShowInColourAndShape) {
  const DataSplits splits = hierarchy({{"train", 2000}, {"contrast", 0.0}, {"noise", 0.0}});
  const auto red_minus_blue = [&](int64_t group, size_t y, size_t x) {
    double sum = 0;
    for (int64_t i = 0; i < 2000; ++i) {
      if (splits.train->label(i) / 5 != group) continue;
      const std::vector<uint8_t> levels = bytes(splits.train->get(i).image);
      sum += static_cast<double>(levels[y * 32 + x]) - static_cast<double>(levels[2 * 1024 + y * 32 + x]);
    }
    return sum / 200;
  };
  const int64_t red_disc = 0, blue_disc = 1, red_bar = 4;
  EXPECT_GT(red_minus_blue(red_disc, 16, 16), 80);
  EXPECT_LT(red_minus_blue(blue_disc, 16, 16), -80);
  EXPECT_GT(red_minus_blue(red_disc, 8, 16), 60);  // above the middle
  EXPECT_LT(red_minus_blue(red_bar, 8, 16), 30);
  EXPECT_GT(red_minus_blue(red_bar, 16, 7), 60);  // left of it
}

TEST(Hierarchy, RefusesImpossibleSettings) {
  EXPECT_NE(error_text({{"groups", 49}}).find("2 to 48"), std::string::npos);
  EXPECT_NE(error_text({{"classes_per_group", 21}}).find("2 to 20"), std::string::npos);
  EXPECT_NE(error_text({{"shifts", 5}}).find("1 to 4"), std::string::npos);
  EXPECT_NE(error_text({{"side", 8}}).find("16 to 512"), std::string::npos);
  EXPECT_NE(error_text({{"noise", -1.0}}).find("noise"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::hierarchy_test
