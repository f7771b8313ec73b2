#include "sparsight/analysis/routing_accumulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/analysis/routing_fixture.h"

namespace sparsight::routing_accumulator_test {
namespace {

using testing::hand_made_routing;
using testing::to_tensor;

TEST(RoutingAccumulator, CountsByHand) {
  RoutingAccumulator sums;
  sums.add({hand_made_routing()}, to_tensor<int64_t>({1, 0}, at::kLong), 2);
  const Json layer = sums.layers().at(0);
  EXPECT_EQ(layer["layer"], "blocks.1.mlp");
  EXPECT_EQ(layer["experts"], 3);
  EXPECT_EQ(layer["load"], Json({4, 1, 3}));
  EXPECT_EQ(layer["kept"], Json({4, 1, 2}));
  // Gates by expert: 4 x 0.5; 0.5; 0.5 + 0.5 + 0.9
  const std::vector<double> importance{2, 0.5, 1.9};
  for (size_t e = 0; e < 3; ++e) EXPECT_NEAR(layer["importance"][e].get<double>(), importance[e], 1e-6);
  // load: mean 8/3, deviations 4/3, -5/3, 1/3; variance (16 + 25 + 1) / 27; cv = sqrt(42/27) * 3/8
  EXPECT_NEAR(layer["cv_load"].get<double>(), std::sqrt(42.0 / 27) * 3 / 8, 1e-12);
  // importance: mean 4.4/3, deviations 1.6/3, -2.9/3, 1.3/3; variance (2.56 + 8.41 + 1.69) / 27
  EXPECT_NEAR(layer["cv_importance"].get<double>(), std::sqrt(12.66 / 27) * 3 / 4.4, 1e-6);
  EXPECT_NEAR(layer["max_over_mean"].get<double>(), 4 / (8.0 / 3), 1e-12);
  EXPECT_NEAR(layer["max_over_mean_load"].get<double>(), 4 / (8.0 / 3), 1e-12);
  EXPECT_NEAR(layer["dropped"].get<double>(), 1.0 / 8, 1e-12);
  EXPECT_NEAR(layer["mean_top_gate"].get<double>(), (7 * 0.5 + 0.9) / 8, 1e-6);
  // Each of 8 tokens chose one expert; one token lost it.
  EXPECT_EQ(layer["experts_per_token"], 1.0);
  EXPECT_EQ(layer["tokens_with"], Json({0, 8}));
  EXPECT_EQ(layer["kept_per_token"], 7.0 / 8);
  EXPECT_EQ(layer["tokens_with_kept"], Json({1, 7}));
  // Single routings have them too: the log of training.
  const Json logged = routing_balance({hand_made_routing()})[0];
  EXPECT_EQ(logged["tokens_with"], Json({0, 8}));
  EXPECT_EQ(logged["tokens_with_kept"], Json({1, 7}));
  // Image 0 has class 1 and used experts 0 0 0 1; image 1 has class 0 and used 2 2 0 2.
  EXPECT_EQ(sums.class_expert()["blocks.1.mlp"], Json::parse("[[1, 0, 3], [3, 1, 0]]"));
  // Cells 1/8, 0, 3/8 and 3/8, 1/8, 0; classes 1/2, 1/2; experts 1/2, 1/8, 3/8:
  // 1/8 log2(1/2) + 3/8 log2(2) + 3/8 log2(3/2) + 1/8 log2(2)
  EXPECT_NEAR(layer["class_information"]["bits"].get<double>(), 3.0 / 8 + 3.0 / 8 * std::log2(1.5), 1e-12);
  EXPECT_EQ(layer["class_information"]["images"], 2);
}

TEST(RoutingAccumulator, BatchesAndLayersAddUp) {
  Routing other = hand_made_routing();
  other.layer = "blocks.0.mlp";
  RoutingAccumulator sums;
  EXPECT_TRUE(sums.empty());
  for (int i = 0; i < 3; ++i) sums.add({hand_made_routing(), other}, to_tensor<int64_t>({1, 1}, at::kLong), 2);
  ASSERT_EQ(sums.layers().size(), 2u);
  EXPECT_EQ(sums.layers()[0]["layer"], "blocks.1.mlp") << "forward order, not alphabetical";
  EXPECT_EQ(sums.layers()[1]["load"], Json({12, 3, 9}));
  EXPECT_EQ(sums.class_expert()["blocks.0.mlp"], Json::parse("[[0, 0, 0], [12, 3, 9]]"));
}

TEST(RoutingAccumulator, NoKeptListWithoutDrops) {
  Routing routing = hand_made_routing();
  routing.kept.fill_(true);
  RoutingAccumulator sums;
  sums.add({routing}, to_tensor<int64_t>({0, 0}, at::kLong), 1);
  EXPECT_FALSE(sums.layers()[0].contains("kept"));
  EXPECT_FALSE(sums.layers()[0].contains("tokens_with_kept"));
  EXPECT_EQ(sums.layers()[0]["kept_per_token"], 1.0);
  EXPECT_EQ(sums.layers()[0]["dropped"], 0.0);
}

TEST(RoutingAccumulator, ForeignLabelsCountForNoClass) {
  RoutingAccumulator sums;
  sums.add({hand_made_routing()}, to_tensor<int64_t>({-1, 7}, at::kLong), 2);
  EXPECT_EQ(sums.layers()[0]["load"], Json({4, 1, 3}));
  EXPECT_EQ(sums.class_expert()["blocks.1.mlp"], Json::parse("[[0, 0, 0], [0, 0, 0]]"));
}

TEST(RoutingAccumulator, RefusesRoutingsThatDoNotFit) {
  RoutingAccumulator sums;
  EXPECT_THROW(sums.add({hand_made_routing()}, to_tensor<int64_t>({0, 0, 0}, at::kLong), 2), Error);
  sums.add({hand_made_routing()}, to_tensor<int64_t>({0, 0}, at::kLong), 2);
  Routing wider = hand_made_routing();
  wider.experts = 4;
  EXPECT_THROW(sums.add({wider}, to_tensor<int64_t>({0, 0}, at::kLong), 2), Error);
}

}  // namespace
}  // namespace sparsight::routing_accumulator_test
