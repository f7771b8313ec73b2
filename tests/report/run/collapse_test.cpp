// Collapsed layers, with loads whose entropies are worked out by hand.
#include "sparsight/report/run/collapse.h"

#include <gtest/gtest.h>

namespace sparsight::collapse_test {
namespace {

Json layer(const std::vector<int64_t>& load, double experts_per_token = 1, double dropped = 0) {
  return {{"layer", "blocks.1.mlp"}, {"load", load}, {"experts_per_token", experts_per_token}, {"dropped", dropped}};
}

using Lines = std::vector<std::string>;

RunMetrics run(const Json& of_layer, const Json& losses) {
  return sort_metrics({{{"kind", "train"}, {"step", 10}, {"losses", losses}},
                       {{"kind", "eval"}, {"split", "test"}, {"step", 10}, {"layers", Json::array({of_layer})}}});
}

}  // namespace

// Entropy of (0.97, 0.01, 0.01, 0.01): 0.0295 + 3 x 0.0461 = 0.1677 nats, as that of 1.18 experts: 6 % of the way from
// one expert to four.
TEST(Collapse, OneBusyExpertOfFour) {
  EXPECT_EQ(find_collapse(Json::array({layer({970, 10, 10, 10})})),
            Lines{"blocks.1.mlp: its router collapsed: 2 of 4 experts get 98.0 % of all that is routed"});
}

// Two of ten are 1/9 of the way from one expert to ten.
TEST(Collapse, AllImagesGoToTwoOfTen) {
  EXPECT_EQ(find_collapse(Json::array({layer({0, 500, 0, 0, 500, 0, 0, 0, 0, 0})})),
            (Lines{"blocks.1.mlp: its router collapsed: 2 of 10 experts get 100.0 % of all that is routed",
                   "blocks.1.mlp: 8 of 10 experts are dead, with under 1 % of an even share: 0, 2, 3, 5, 6, 7, 8, 9"}));
}

// With two experts for each token, two of four is the fewest that there can be.
TEST(Collapse, TheSameTwoForEveryToken) {
  EXPECT_EQ(find_collapse(Json::array({layer({500, 500, 0, 0}, 2)})).size(), 2u);
}

TEST(Collapse, NothingIsSaidOfExpertsThatAreUsed) {
  for (const Json& used : {layer({30, 25, 25, 20}), layer({40, 20, 10, 10, 10, 5, 3, 2}, 2), layer({7}), layer({}),
                           layer({0, 0}), layer({500, 500}, 2), Json{{"layer", "soft"}}})
    EXPECT_EQ(find_collapse(Json::array({used})), Lines{}) << used;
  EXPECT_EQ(find_collapse(Json()), Lines{});
}

TEST(Collapse, CapacityThatDropsMuchIsNamed) {
  EXPECT_EQ(
      find_collapse(Json::array({layer({30, 25, 25, 20}, 1, 0.35)})),
      Lines{"blocks.1.mlp: capacity drops 35 % of the assignments; raise capacity.factor or balance the experts"});
}

TEST(Collapse, SaysWhatFixesIt) {
  const Json collapsed = layer({970, 10, 10, 10});
  EXPECT_NE(find_collapse(run(collapsed, Json::object())).back().find("--set losses.switch=0.01"), std::string::npos);
  EXPECT_NE(find_collapse(run(collapsed, {{"switch", 1.2}})).back().find("switch; raise their weights"),
            std::string::npos);
  const Json frozen{{"train", {{"freeze", {"router"}}}}};
  EXPECT_NE(find_collapse(run(collapsed, {{"switch", 1.2}}), frozen).back().find("no balance loss reaches them"),
            std::string::npos);
  EXPECT_EQ(find_collapse(run(layer({30, 25, 25, 20}), Json::object())), Lines{});
}

}  // namespace sparsight::collapse_test
