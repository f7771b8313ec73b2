#include "sparsight/analysis/keypoint_patches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"
#include "tests/analysis/routing_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::keypoint_patches_test {
namespace {

using testing::to_tensor;

constexpr PixelGrid kGrid{14, 14, 224, 224};  // patches of 16 pixels, centres at 16 c + 8
constexpr int64_t kExperts = 6;

// One image: a class token and 14 x 14 patches with the given experts, one for each.
Routing routed(const std::vector<int64_t>& experts) {
  Routing routing;
  routing.layer = "blocks.10.mlp";
  routing.layout = {1, 197, 1, 14, 14};
  routing.tokens = 197;
  routing.experts = kExperts;
  routing.per_token = 1;
  std::vector<int64_t> token(197), chosen{0}, kept(197, 1);
  for (int64_t t = 0; t < 197; ++t) token[static_cast<size_t>(t)] = t;
  chosen.insert(chosen.end(), experts.begin(), experts.end());
  routing.token = to_tensor<int64_t>(token, at::kLong);
  routing.expert = to_tensor<int64_t>(chosen, at::kLong);
  routing.gate = to_tensor<float>(std::vector<float>(197, 0.5f), at::kFloat);
  routing.kept = to_tensor<int64_t>(kept, at::kLong).to(at::kBool);
  return routing;
}

}  // namespace

// Four centres are (8, 8) away. Of the eight that are (8, 24) away, the five of the lowest numbers: in row 5 columns 6
// and 7, in row 6 columns 5 and 8, in row 7 column 5.
TEST(KeypointPatches, G52_TheMiddleOfTheImage) {
  EXPECT_EQ(nearest_patches(112, 112, kGrid), (std::vector<int64_t>{90, 91, 104, 105, 76, 77, 89, 92, 103}));
}

// On a centre: itself, its four neighbours, its four diagonal ones.
TEST(KeypointPatches, G52_TheCentreOfAPatch) {
  EXPECT_EQ(nearest_patches(16 * 5 + 8, 16 * 3 + 8, kGrid), (std::vector<int64_t>{47, 33, 46, 48, 61, 32, 34, 60, 62}));
}

// In units of 8 pixels the centres are at 1, 3, 5, 7. Squared distances: (0,0) 2; (0,1), (1,0) 10; (1,1) 18; (0,2),
// (2,0) 26; (1,2), (2,1) 34; then (0,3), (2,2), (3,0) 50, of which patch 3 is the first: no square of 3 x 3.
TEST(KeypointPatches, G52_TheCorner) {
  EXPECT_EQ(nearest_patches(0, 0, kGrid), (std::vector<int64_t>{0, 1, 14, 15, 2, 28, 16, 29, 3}));
}

TEST(KeypointPatches, G52_NineDistinctPatchesEverywhere) {
  for (double y = 0; y <= 224; y += 7)
    for (double x = 0; x <= 224; x += 7) {
      const std::vector<int64_t> patches = nearest_patches(x, y, kGrid);
      EXPECT_EQ(std::set(patches.begin(), patches.end()).size(), 9u) << x << " " << y;
    }
  EXPECT_EQ(nearest_patches(1, 1, {2, 2, 16, 16}).size(), 4u) << "all of them";
}

TEST(KeypointPatches, G52_OutsideOfTheImage) {
  for (const auto& [x, y] : {std::pair{-0.5, 3.0}, {3.0, 224.5}, {std::nan(""), 3.0}})
    EXPECT_NE(testing::error_text([&, x = x, y = y] {
                nearest_patches(x, y, kGrid);
              }).find("is outside of the image of 224x224 pixels"),
              std::string::npos);
}

// Three parts far from each other, whose patches go to the experts 4, 4 and 1; all else to 0.
TEST(PartExperts, G53_PlantedRoutingIsRecovered) {
  const std::vector<PlacedPart> points{{0, 40, 40}, {1, 180, 40}, {2, 112, 180}};
  std::vector<int64_t> experts(196, 0);
  for (const PlacedPart& point : points)
    for (const int64_t patch : nearest_patches(point.x, point.y, kGrid))
      experts[static_cast<size_t>(patch)] = point.part == 2 ? 1 : 4;
  PartExperts table("blocks.10.mlp", 3, kExperts);
  for (int i = 0; i < 4; ++i) table.add(routed(experts), 0, points, 224, 224);
  // 4 images of 9 patches for each part; 196 - 27 = 169 of the background.
  EXPECT_EQ(table.counts(), (std::vector<int64_t>{0,   0,  0, 0, 36, 0,  //
                                                  0,   0,  0, 0, 36, 0,  //
                                                  0,   36, 0, 0, 0,  0,  //
                                                  676, 0,  0, 0, 0,  0}));
  // The expert says which of {0, 1} and {2}: H(1/3) = 0.918296 bits, of log2 3 = 1.584963.
  EXPECT_NEAR(table.information().bits, 0.918296, 1e-6);
  EXPECT_NEAR(table.part_entropy(), 1.584963, 1e-6);
  const Json json = table.json({"left wing", "right wing", "tail"});
  EXPECT_EQ(json["best_expert"], Json({4, 4, 1, 0}));
  EXPECT_EQ(json["pairs"], Json::parse(R"([{"pair": "wing", "same": true}])"));
  EXPECT_NEAR(json["of_part_entropy"].get<double>(), 0.918296 / 1.584963, 1e-6);
  EXPECT_EQ(json["entropy"], Json({0., 0., 0., 0.}));
  EXPECT_EQ(json["keypoints"], Json({4, 4, 4}));
}

// Experts at random: of n = 200 * 15 * 9 patches the expected information is (15 - 1) (6 - 1) / (2 n ln 2) = 0.00187
// bits. Bound: twice that, six standard deviations above (of 2 n ln 2 times the information, which is chi-squared with
// 70 degrees of freedom; patches that two parts share count for both).
TEST(PartExperts, G53_ShuffledRoutingHasNoInformation) {
  PartExperts table("blocks.10.mlp", 15, kExperts);
  RandomStream random(0, "test.part_experts");
  for (int image = 0; image < 200; ++image) {
    std::vector<int64_t> experts(196);
    for (int64_t& expert : experts) expert = random.below(kExperts);
    std::vector<PlacedPart> points;
    for (int64_t part = 0; part < 15; ++part)
      points.push_back({part, static_cast<double>(random.below(225)), static_cast<double>(random.below(225))});
    table.add(routed(experts), 0, points, 224, 224);
  }
  EXPECT_LT(table.information().bits, 0.00374);
  EXPECT_LT(table.information().shuffled, 0.00374);
  EXPECT_GT(table.information().bits, 0);
}

TEST(PartExperts, G53_PatchesWithoutExpertDoNotCount) {
  PartExperts table("blocks.10.mlp", 1, kExperts);
  Routing routing = routed(std::vector<int64_t>(196, 2));
  routing.kept = routing.kept.clone();
  routing.kept[1].fill_(false);  // patch 0
  table.add(routing, 0, {{0, 8, 8}}, 224, 224);
  EXPECT_EQ(table.counts()[2], 8);
  EXPECT_EQ(table.counts()[kExperts + 2], 187);
  EXPECT_TRUE(PartExperts("x", 1, 2).json({"beak"})["of_part_entropy"].is_null());
}

}  // namespace sparsight::keypoint_patches_test
