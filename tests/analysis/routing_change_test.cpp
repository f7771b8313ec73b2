// Change rates of routings: the worked example with capacity, conventions, padding, chance.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/moe/finish_routing.h"
#include "tests/moe/robust_moe_example.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::routing_change_test {
namespace {

// "01 02 - 1": the experts of each token.
std::string sets_text(const ExpertSets& sets) {
  std::string text;
  for (int64_t t = 0; t < sets.member.size(1); ++t) {
    std::string experts;
    for (int64_t e = 0; e < sets.member.size(2); ++e)
      if (sets.member[0][t][e].item<bool>()) experts += std::to_string(e);
    text += (t > 0 ? " " : "") + (experts.empty() ? "-" : experts);
  }
  return text;
}

ExpertSets make_sets(std::vector<int64_t> experts, int64_t tokens, int64_t k, int64_t experts_of_layer) {
  return listed_sets(torch::tensor(experts, torch::kLong).view({1, tokens, k}), experts_of_layer);
}

double rate(const Routing& clean, const Routing& attacked, BothEmpty both_empty = BothEmpty::unchanged) {
  return routing_change(kept_sets(clean), kept_sets(attacked), both_empty).rate();
}

// Two images of 3 tokens among 4 experts, with one choice each.
Routing top1(const at::Tensor& logits, int64_t images) {
  Routing routing = route_softmax_topk(logits, {}, 0, 1, false);
  routing.layout = {images, logits.size(0) / images, 0, 0, 0};
  return routing;
}

}  // namespace

TEST(RoutingChange, A6_SetsAndRatesWithCapacity) {
  const struct {
    int64_t slots;
    bool bpr;
    const char *clean, *attacked;
    double rate;
  } rows[] = {{6, false, "01 02 02 01 01 02", "01 01 01 02 12 02", 0.444444},
              {4, false, "01 02 02 1 01 2", "1 01 01 02 12 02", 0.666667},
              {4, true, "01 02 02 1 01 2", "1 01 01 02 12 02", 0.666667},
              {3, false, "01 02 02 1 1 2", "1 01 0 02 12 2", 0.527778},
              {3, true, "01 02 02 1 1 2", "1 0 01 2 12 02", 0.611111},
              {2, false, "01 02 - 1 - 2", "1 0 0 2 12 -", 0.833333},
              {2, true, "01 - 02 1 - 2", "1 - 0 - 12 02", 0.583333}};
  for (const auto& row : rows) {
    const Routing clean = test::routed_group(test::clean_group(), row.slots, row.bpr),
                  attacked = test::routed_group(test::attacked_group(), row.slots, row.bpr);
    EXPECT_EQ(sets_text(kept_sets(clean)), row.clean) << row.slots << row.bpr;
    EXPECT_EQ(sets_text(kept_sets(attacked)), row.attacked) << row.slots << row.bpr;
    EXPECT_NEAR(rate(clean, attacked), row.rate, 1e-6) << row.slots << row.bpr;
    // What was chosen does not depend on capacity.
    EXPECT_EQ(sets_text(chosen_sets(clean)), rows[0].clean);
    EXPECT_EQ(sets_text(chosen_sets(attacked)), rows[0].attacked);
  }
}

TEST(RoutingChange, A35_IdenticalDisjointAndOneSwap) {
  const auto change = [](const ExpertSets& a, const ExpertSets& b) { return routing_change(a, b).rate(); };
  const ExpertSets both = make_sets({0, 1, 2, 3}, 2, 2, 4);
  EXPECT_EQ(change(both, both), 0);
  EXPECT_EQ(change(both, make_sets({1, 0, 3, 2}, 2, 2, 4)), 0);  // another order
  EXPECT_EQ(change(both, make_sets({2, 3, 0, 1}, 2, 2, 4)), 1);
  EXPECT_NEAR(change(make_sets({0, 1}, 1, 2, 4), make_sets({0, 3}, 1, 2, 4)), 2.0 / 3, 1e-12);
  // One of two tokens: its 2/3 over 2.
  EXPECT_NEAR(change(both, make_sets({0, 3, 2, 3}, 2, 2, 4)), 1.0 / 3, 1e-12);
}

TEST(RoutingChange, A36_ConventionsForTokensDroppedTwice) {
  const Routing clean = test::routed_group(test::clean_group(), 2, true),
                attacked = test::routed_group(test::attacked_group(), 2, true);
  EXPECT_NEAR(rate(clean, attacked, BothEmpty::public_compat), 0.75, 1e-6);
  EXPECT_NEAR(rate(clean, attacked), 0.583333, 1e-6);
  EXPECT_NEAR(rate(clean, attacked, BothEmpty::excluded), 0.7, 1e-6);
  // An image whose tokens are all dropped twice is in no mean.
  const ExpertSets none = make_sets({-1, -1}, 2, 1, 3);
  EXPECT_EQ(routing_change(none, none, BothEmpty::excluded).images, 0);
  EXPECT_EQ(routing_change(none, none, BothEmpty::public_compat).rate(), 1);
}

TEST(RoutingChange, A37_PaddingDoesNotCount) {
  const at::Tensor logits = test::random_tensor({9, 4}, 1), other = test::random_tensor({9, 4}, 2);
  const Routing clean = top1(logits.narrow(0, 0, 6), 2), attacked = top1(other.narrow(0, 0, 6), 2);
  // A third image of padding, with the same experts in both or not.
  for (const bool same : {false, true}) {
    at::Tensor with = other.clone();
    if (same) with.narrow(0, 6, 3).copy_(logits.narrow(0, 6, 3));
    Routing padded = top1(logits, 3), padded_attacked = top1(with, 3);
    const at::Tensor valid = torch::arange(9) < 6;
    drop_padding(padded, valid);
    drop_padding(padded_attacked, valid);
    for (const BothEmpty rule : {BothEmpty::unchanged, BothEmpty::public_compat, BothEmpty::excluded}) {
      const RoutingChange got = routing_change(kept_sets(padded), kept_sets(padded_attacked), rule);
      EXPECT_EQ(got.images, 2);
      EXPECT_EQ(got.rate(), rate(clean, attacked));
    }
  }
}

TEST(RoutingChange, A38_ChanceOfIndependentChoices) {
  EXPECT_NEAR(chance_change_rate(2, 2), 0, 1e-12);
  EXPECT_NEAR(chance_change_rate(4, 2), 0.611111, 1e-6);
  EXPECT_NEAR(chance_change_rate(8, 2), 0.821429, 1e-6);
  EXPECT_NEAR(chance_change_rate(16, 2), 0.913889, 1e-6);
  EXPECT_NEAR(chance_change_rate(32, 2), 0.957661, 1e-6);
  EXPECT_NEAR(chance_change_rate(5, 1), 0.8, 1e-12);
  // Random routings reach it: 20,000 tokens, a standard deviation of about 0.003.
  const auto random = [](uint64_t seed) {
    Routing routing = route_softmax_topk(test::random_tensor({20000, 8}, seed), {}, 0, 2, false);
    routing.layout = {100, 200, 0, 0, 0};
    return routing;
  };
  const LayerChange change = routing_changes({random(1)}, {random(2)}).at(0);
  EXPECT_NEAR(change.chosen.rate(), change.chance(), 0.015);
  EXPECT_NEAR(change.of_chance(), 1, 0.02);
}

TEST(RoutingChange, RatesAreMeansOfTokensThenOfImages) {
  const at::Tensor clean = torch::tensor({{{0}, {1}, {2}}, {{0}, {1}, {2}}}, torch::kLong);
  const at::Tensor attacked = torch::tensor({{{1}, {1}, {2}}, {{0}, {2}, {1}}}, torch::kLong);
  ExpertSets before = listed_sets(clean, 3), after = listed_sets(attacked, 3);
  EXPECT_NEAR(routing_change(before, after).rate(), (1.0 / 3 + 2.0 / 3) / 2, 1e-12);
  before.valid = torch::tensor({{true, false, false}, {true, true, true}});
  EXPECT_NEAR(routing_change(before, after).rate(), (1 + 2.0 / 3) / 2, 1e-12);
  // Batches add up.
  RoutingChange sum = routing_change(before, after);
  sum.add(routing_change(before, before));
  EXPECT_EQ(sum.images, 4);
  EXPECT_NEAR(sum.rate(), (1 + 2.0 / 3) / 4, 1e-12);
}

TEST(RoutingChange, RefusesWhatCannotBeCompared) {
  const Routing clean = test::routed_group(test::clean_group(), 6);
  Routing other = clean, soft = clean;
  other.layer = "blocks.3.mlp";
  soft.soft = std::make_shared<SoftRouting>();
  const auto message = [&](std::vector<Routing> after) {
    return testing::error_text([&] { routing_changes({clean}, after); });
  };
  EXPECT_NE(message({other}).find("blocks.1.mlp with that of blocks.3.mlp"), std::string::npos);
  EXPECT_NE(message({}).find("1 layers"), std::string::npos);
  EXPECT_NE(message({soft}).find("mixes tokens"), std::string::npos);
  EXPECT_NE(testing::error_text([] { make_sets({0, 3}, 1, 2, 3); }).find("from 0 to 2"), std::string::npos);
  EXPECT_NE(testing::error_text([] { chance_change_rate(2, 3); }).find("got 3"), std::string::npos);
}

}  // namespace sparsight::routing_change_test
