// Routing before and after an attack, on the worked example of six tokens.
#include "sparsight/analysis/attacked_routing.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/moe/robust_moe_example.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attacked_routing_test {
namespace {

Routing routed(const at::Tensor& logits, int64_t k) {
  Routing routing = route_softmax_topk(logits, {}, 0, k, false);
  routing.layer = "blocks.1.mlp";
  routing.layout = {1, logits.size(0), 0, 0, 0};
  return routing;
}

}  // namespace

// Six slots, so that nothing is dropped: change 0.444444. Of two of three experts chance is
// 1 - (2/3 1/3 + 1/3) = 4/9 as well.
TEST(AttackedRouting, A39_StatesChangeChanceAndUsage) {
  AttackedRouting routing;
  EXPECT_TRUE(routing.empty());
  for (int i = 0; i < 2; ++i)
    routing.add({test::routed_group(test::clean_group(), 6)}, {test::routed_group(test::attacked_group(), 6)});
  const Json layers = routing.layers();
  ASSERT_EQ(layers.size(), 1u);
  const Json& layer = layers[0];
  EXPECT_EQ(layer["layer"], "blocks.1.mlp");
  EXPECT_EQ(layer["images"], 2);
  EXPECT_EQ(layer["per_token"], 2);
  EXPECT_NEAR(layer["change"], 0.444444, 1e-6);
  EXPECT_NEAR(layer["chance"], 4.0 / 9, 1e-12);
  EXPECT_NEAR(layer["of_chance"], 1, 1e-6);
  EXPECT_EQ(layer["load"], (std::vector<int64_t>{12, 6, 6}));
  // Attacked sets 01, 01, 01, 02, 12, 02: five, four and three.
  EXPECT_EQ(layer["attacked_load"], (std::vector<int64_t>{10, 8, 6}));
  EXPECT_NEAR(layer["entropy_nats"], 1.039721, 1e-6);
  EXPECT_NEAR(layer["entropy"], 0.946395, 1e-6);
  const double after = -(5. / 12 * std::log(5. / 12) + 4. / 12 * std::log(4. / 12) + 3. / 12 * std::log(3. / 12));
  EXPECT_NEAR(layer["attacked_entropy_nats"], after, 1e-12);
}

// Capacity 2 with priorities: two tokens are dropped in both passes or in one.
TEST(AttackedRouting, A36_CountsTokensDroppedTwiceBothWays) {
  AttackedRouting routing;
  routing.add({test::routed_group(test::clean_group(), 2, true)},
              {test::routed_group(test::attacked_group(), 2, true)});
  const Json layer = routing.layers()[0];
  EXPECT_NEAR(layer["change"], 0.583333, 1e-6);
  EXPECT_NEAR(layer["change_public"], 0.75, 1e-6);
  EXPECT_NEAR(layer["change_chosen"], 0.444444, 1e-6);  // as if nothing were dropped
  EXPECT_EQ(layer["dropped"], 0.5);
}

TEST(AttackedRouting, A41_TwoOfTwoExpertsHaveNoChance) {
  AttackedRouting routing;
  routing.add({routed(test::random_tensor({8, 2}, 1), 2)}, {routed(test::random_tensor({8, 2}, 2), 2)});
  const Json layer = routing.layers()[0];
  EXPECT_EQ(layer["change"], 0);
  EXPECT_EQ(layer["chance"], 0);
  EXPECT_TRUE(layer["of_chance"].is_null());
}

// One token of four has lost a choice: no number of choices, no chance.
TEST(AttackedRouting, A38_ChanceNeedsAFixedNumberOfChoices) {
  Routing fewer = routed(test::random_tensor({4, 4}, 1), 2);
  const at::Tensor all_but_last = torch::arange(7, torch::kLong);
  for (at::Tensor Routing::*field : {&Routing::token, &Routing::expert, &Routing::rank, &Routing::gate, &Routing::kept})
    fewer.*field = (fewer.*field).index_select(0, all_but_last);
  AttackedRouting routing;
  routing.add({fewer}, {routed(test::random_tensor({4, 4}, 1), 2)});
  const Json layer = routing.layers()[0];
  EXPECT_NEAR(layer["change"], 1.0 / 8, 1e-12);  // one of two experts is common: 1/2 of one of four tokens
  for (const char* key : {"per_token", "chance", "of_chance"}) EXPECT_TRUE(layer[key].is_null()) << key;
}

// The second of two images stays as it is.
TEST(AttackedRouting, MovedImagesHaveARateOfTheirOwn) {
  const at::Tensor clean = test::random_tensor({8, 4}, 1);
  at::Tensor attacked = clean.clone();
  attacked.narrow(0, 0, 4).copy_(test::random_tensor({4, 4}, 2));
  const auto two_images = [](const at::Tensor& logits) {
    Routing routing = routed(logits, 2);
    routing.layout = {2, 4, 0, 0, 0};
    return routing;
  };
  AttackedRouting routing, unknown;
  routing.add({two_images(clean)}, {two_images(attacked)}, torch::tensor({true, false}));
  unknown.add({two_images(clean)}, {two_images(attacked)});
  const Json layer = routing.layers()[0];
  EXPECT_GT(layer["change"].get<double>(), 0);
  EXPECT_NEAR(layer["change_moved"].get<double>(), 2 * layer["change"].get<double>(), 1e-12);
  EXPECT_TRUE(unknown.layers()[0]["change_moved"].is_null());
}

TEST(AttackedRouting, OfOtherLayersIsAnError) {
  AttackedRouting routing;
  const Routing one = routed(test::random_tensor({8, 2}, 1), 1);
  Routing other = one;
  other.layer = "blocks.3.mlp";
  routing.add({one}, {one});
  EXPECT_NE(testing::error_text([&] { routing.add({other}, {other}); }).find("blocks.3.mlp to that of blocks.1.mlp"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] { routing.add({one, other}, {one, other}); }).find("2 layers"), std::string::npos);
}

}  // namespace sparsight::attacked_routing_test
