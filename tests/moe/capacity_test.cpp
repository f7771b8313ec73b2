#include "sparsight/moe/capacity.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::capacity_test {
namespace {

using test::near;
using test::table;

// The worked example: gates given, k = 2; choices [[0,1],[0,2],[0,1]].
Routing example(at::ScalarType type = torch::kDouble) {
  const at::Tensor gates = table({{.50, .30, .15, .05}, {.60, .10, .25, .05}, {.70, .20, .05, .05}});
  return route_softmax_topk(gates.log().to(type), {}, 0, 2, false);
}

at::Tensor by_token(const at::Tensor& values) { return values.view({3, 2}); }
at::Tensor weights(const Routing& r) { return by_token(r.gate * r.kept); }

CapacityOptions priority(const std::string& by) {
  CapacityOptions options;
  options.priority = by;
  return options;
}

// Rows of each expert and group, and whether any limit is exceeded.
void expect_no_overflow(const Routing& r) {
  const at::Tensor key = group_of_token(r).index_select(0, r.token) * r.experts + r.expert;
  const at::Tensor rows =
      torch::bincount(key.masked_select(r.kept), {}, r.group_count * r.experts).view({-1, r.experts});
  EXPECT_TRUE((rows <= r.capacity.unsqueeze(1)).all().item<bool>()) << rows;
}

// Identity experts.
class Identity : public Experts {
 public:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor&, const RowContext&) override { return rows; }
};

}  // namespace

class CapacityExample : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return GetParam() == torch::kDouble ? 1e-12 : 1e-6; }  // gates are given exactly
};

TEST_P(CapacityExample, S24_ReproducesT15WithTwoRows) {
  Routing vanilla = example(GetParam()), first = example(GetParam());
  apply_capacity(vanilla, {}, 1);  // ceil(1 * 2 * 3 / 4) = 2
  EXPECT_EQ(vanilla.capacity.item<int64_t>(), 2);
  EXPECT_TRUE(torch::equal(by_token(vanilla.position), torch::tensor({{0, 0}, {1, 0}, {2, 1}}, torch::kLong)));
  EXPECT_TRUE(near(weights(vanilla), table({{.50, .30}, {.60, .25}, {0, .20}}), tol()));
  EXPECT_TRUE(torch::equal(vanilla.order, torch::tensor({0, 2, 1, 5, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(vanilla.offsets, torch::tensor({0, 2, 4, 5, 5}, torch::kLong)));

  apply_capacity(first, priority("max_gate"), 1);
  EXPECT_TRUE(torch::equal(by_token(first.position), torch::tensor({{2, 1}, {1, 0}, {0, 0}}, torch::kLong)));
  EXPECT_TRUE(near(weights(first), table({{0, .30}, {.60, .25}, {.70, .20}}), tol()));
  EXPECT_EQ(first.gate.scalar_type(), GetParam());
}

// V-MoE sorts tokens by their largest softmax probability; gates of one choice over their sum are all 1.
TEST(Capacity, PriorityIsTheScoreBeforeRenormalisation) {
  const at::Tensor probability = torch::tensor({{.50, .30, .20}, {.90, .05, .05}, {.60, .25, .15}});
  const auto kept = [&](int64_t k, const char* by) {
    Routing r = route_softmax_topk(probability.log(), {}, 0, k, /*renormalize=*/true);
    apply_capacity(r, priority(by), 0.5);  // ceil(0.5 k 3 / 3) of each expert
    return r.kept.view({3, k});
  };
  for (const char* by : {"max_gate", "sum_gates"})
    EXPECT_TRUE(torch::equal(kept(1, by), torch::tensor({{false}, {true}, {false}}))) << by;
  // Experts 0 and 1 have one slot each: token 1 (0.90) takes both of its choices.
  EXPECT_TRUE(torch::equal(kept(2, "max_gate"), torch::tensor({{false, false}, {true, true}, {false, false}})));
  // Sums of the two probabilities: 0.80, 0.95, 0.85.
  EXPECT_TRUE(torch::equal(kept(2, "sum_gates"), torch::tensor({{false, false}, {true, true}, {false, false}})));
}

TEST_P(CapacityExample, S24_ReproducesT15WithOneRow) {
  Routing vanilla = example(GetParam()), first = example(GetParam());
  apply_capacity(vanilla, {}, 0.5);
  EXPECT_EQ(vanilla.capacity.item<int64_t>(), 1);
  EXPECT_TRUE(near(weights(vanilla), table({{.50, .30}, {0, .25}, {0, 0}}), tol()));
  apply_capacity(first, priority("max_gate"), 0.5);
  EXPECT_TRUE(near(weights(first), table({{0, 0}, {0, .25}, {.70, .20}}), tol()));
  expect_no_overflow(vanilla);
  expect_no_overflow(first);
}

// Tokens 1, 2, 4 through identity experts, and the sum of the output: the gradient of a gate is its token, that of a
// token the sum of its gates; dropped assignments contribute to neither.
TEST_P(CapacityExample, S24_WhatIsDroppedHasNoGradient) {
  const auto gradients = [&](const CapacityOptions& options) {
    Routing r = example(GetParam());
    apply_capacity(r, options, 1);
    r.gate = r.gate.detach().requires_grad_(true);
    const at::Tensor x = torch::tensor({{1.}, {2.}, {4.}}, GetParam()).requires_grad_(true);
    Identity experts;
    experts.apply_routing(x, r).sum().backward();
    return std::pair(by_token(r.gate.grad()), x.grad());
  };
  const auto [vanilla_gate, vanilla_x] = gradients({});
  EXPECT_TRUE(near(vanilla_gate, table({{1, 1}, {2, 2}, {0, 4}}), 0));
  EXPECT_TRUE(near(vanilla_x, table({{.50 + .30}, {.60 + .25}, {.20}}), tol()));
  const auto [first_gate, first_x] = gradients(priority("max_gate"));
  EXPECT_TRUE(near(first_gate, table({{0, 1}, {2, 2}, {4, 4}}), 0));
  EXPECT_TRUE(near(first_x, table({{.30}, {.60 + .25}, {.70 + .20}}), tol()));
}

// Priorities 1 3 2: tokens get slots in the order 1 2 0. First choices 0 0 0 get the slots 2 0 1 of expert 0; of the
// second choices 1 2 1 token 2 comes before token 0 at expert 1.
TEST(Capacity, S24_GivenPrioritiesDecideWhoAsksFirst) {
  Routing two = example(), one = example(), tied = example(), nobody = example();
  two.priority = one.priority = torch::tensor({1., 3., 2.}, torch::kDouble);
  apply_capacity(two, priority("given"), 1);
  EXPECT_TRUE(torch::equal(by_token(two.position), torch::tensor({{2, 1}, {0, 0}, {1, 0}}, torch::kLong)));
  EXPECT_TRUE(near(weights(two), table({{0, .30}, {.60, .25}, {.70, .20}}), 1e-12));
  apply_capacity(one, priority("given"), 0.5);
  EXPECT_TRUE(near(weights(one), table({{0, 0}, {.60, .25}, {0, .20}}), 1e-12));
  tied.priority = torch::tensor({1.f, NAN, 1.f});  // equal scores keep token order, NaN is last: 0 2 1
  apply_capacity(tied, priority("given"), 1);
  EXPECT_TRUE(torch::equal(by_token(tied.position), torch::tensor({{0, 0}, {2, 0}, {1, 1}}, torch::kLong)));
  EXPECT_THROW(apply_capacity(nobody, priority("given"), 1), UsageError);
  EXPECT_NO_THROW(apply_capacity(nobody, priority("given"), 0));  // no limit, nothing to decide
}

// Integers: no types or gradients to test.
TEST(Capacity, S24_PublishedFormulas) {
  CapacityOptions options;
  const auto rows = [&](double factor, int64_t tokens, int64_t experts, int64_t k) {
    return expert_capacity(options, factor, tokens, experts, k);
  };
  EXPECT_EQ(rows(1.25, 1024, 128, 1), 10);
  EXPECT_EQ(rows(1.05, 1024, 8, 2), 269);
  EXPECT_EQ(rows(1.05, 392, 8, 2), 103);
  EXPECT_EQ(rows(1.1, 10, 1, 1), 10);    // at most all tokens
  EXPECT_EQ(rows(1.1, 100, 10, 1), 11);  // not 12: 1.1 * 10 is a little above 11 in binary
  EXPECT_EQ(rows(0.001, 10, 8, 1), 1);
  options.multiple = 4;  // V-MoE's code
  EXPECT_EQ(rows(1.25, 1024, 128, 1), 12);
  EXPECT_EQ(rows(1.05, 1024, 8, 2), 272);
  EXPECT_EQ(rows(1.05, 392, 8, 2), 104);
  options.multiple = 1;
  options.rounding = "round";  // V-MoE's paper: 1.05 * 2 * 392 / 8 = 102.9
  EXPECT_EQ(rows(1.05, 392, 8, 2), 103);
  options = {};
  options.count_k = false;  // Switch: 1.25 * 1000 / 64 = 19.53, whatever k
  options.minimum = 4;
  options.rounding = "floor";
  EXPECT_EQ(rows(1.25, 1000, 64, 2), 19);
  options.rounding = "round";
  EXPECT_EQ(rows(1.25, 1000, 64, 2), 20);
  EXPECT_EQ(rows(1.25, 64, 64, 2), 4);
  EXPECT_EQ(rows(0.7, 45, 1, 1), 32);  // not 31: 0.7 * 45 is a little below 31.5 in binary
  options = {};
  EXPECT_EQ(rows(1, 1024, 64, 2), 32);  // GShard: 2 S / E
}

TEST(Capacity, G11_ReproducesThoseOfGmoe) {
  CapacityOptions options;
  options.rounding = "floor_per_choice";
  EXPECT_EQ(expert_capacity(options, 1.5, 197, 6, 1), 49);      // floor(1.5 * ceil(197 / 6)) = floor(1.5 * 33)
  EXPECT_EQ(expert_capacity(options, 1.5, 18912, 6, 1), 4728);  // 1.5 * 3152
}

// ceil(c 2 (8 tokens) / 32), then to a multiple of 4, of 8 images of 50 tokens (224 pixels) or 145 (384 pixels).
TEST(Capacity, A5_ReproducesTheTableOfAdversarialRobustness) {
  const struct {
    double factor;
    int64_t rows50, padded50, rows145, padded145;
  } table[] = {{1.0, 25, 28, 73, 76}, {1.05, 27, 28, 77, 80}, {1.5, 38, 40, 109, 112}, {2.0, 50, 52, 145, 148}};
  for (const auto& row : table) {
    CapacityOptions exact, padded;
    padded.multiple = 4;
    EXPECT_EQ(expert_capacity(exact, row.factor, 400, 32, 2), row.rows50) << row.factor;
    EXPECT_EQ(expert_capacity(padded, row.factor, 400, 32, 2), row.padded50) << row.factor;
    EXPECT_EQ(expert_capacity(exact, row.factor, 1160, 32, 2), row.rows145) << row.factor;
    EXPECT_EQ(expert_capacity(padded, row.factor, 1160, 32, 2), row.padded145) << row.factor;
  }
}

TEST_P(CapacityExample, S24_NoExpertEverHoldsMoreThanItsRows) {
  const at::Tensor logits =
      (test::random_tensor({97, 5}, 1) + torch::tensor({2., 1., 0., 0., -3.}, torch::kDouble)).to(GetParam());
  for (const char* by : {"none", "max_gate", "sum_gates"})
    for (const int64_t group : {0, 10, 97, 200})
      for (const double factor : {0.3, 1.0, 1.7}) {
        Routing r = route_softmax_topk(logits, {}, 0, 3, false);
        set_consecutive_groups(r, group);
        apply_capacity(r, priority(by), factor);
        expect_no_overflow(r);
        EXPECT_TRUE(torch::equal(std::get<0>(r.order.sort()), torch::nonzero(r.kept).squeeze(1)));
      }
}

TEST(Capacity, GroupsHaveSeparateBuffers) {
  const at::Tensor logits = torch::tensor({{5., 0.}, {5., 0.}, {5., 0.}, {5., 0.}}, torch::kDouble);
  Routing r = route_softmax_topk(logits, {}, 0, 1, false);
  set_consecutive_groups(r, 2);
  apply_capacity(r, {}, 1);  // one row for each expert in each group of two
  EXPECT_TRUE(torch::equal(r.kept, torch::tensor({true, false, true, false})));
  EXPECT_TRUE(torch::equal(r.capacity, torch::tensor({1, 1}, torch::kLong)));
}

TEST(Capacity, PaddingTakesNoSlotAndIsNotCounted) {
  Routing r = route_softmax_topk(torch::zeros({6, 2}, torch::kDouble), {}, 0, 1, false);
  drop_padding(r, torch::tensor({false, true, false, true, true, true}));
  apply_capacity(r, {}, 1);  // 4 tokens, 2 experts: 2 rows
  EXPECT_EQ(r.capacity.item<int64_t>(), 2);
  EXPECT_TRUE(torch::equal(r.token, torch::tensor({1, 3, 4, 5}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.kept, torch::tensor({true, true, false, false})));
}

TEST(Capacity, EqualPrioritiesKeepTokenOrder) {
  Routing r = route_softmax_topk(torch::zeros({4, 2}, torch::kDouble), {}, 0, 1, false);
  apply_capacity(r, priority("max_gate"), 1);
  EXPECT_TRUE(torch::equal(r.kept, torch::tensor({true, true, false, false})));
}

TEST(Capacity, RenormalizedGatesSumToOneOverWhatIsKept) {
  Routing r = example();
  CapacityOptions options;
  options.renormalize = true;
  apply_capacity(r, options, 1);
  EXPECT_TRUE(near(weights(r), table({{.50 / .80, .30 / .80}, {.60 / .85, .25 / .85}, {0, 1}}), 1e-12));
}

// The layer's output and gradients: moe_layer_test.cpp.
TEST_P(CapacityExample, S25_WithRoomForAllNothingChanges) {
  const Routing before = example(GetParam());
  Routing after = before;
  apply_capacity(after, {}, 4);
  EXPECT_TRUE(after.kept.all().item<bool>());
  EXPECT_TRUE(torch::equal(after.order, before.order) && torch::equal(after.offsets, before.offsets));
  EXPECT_TRUE(torch::equal(after.gate, before.gate));
}

INSTANTIATE_TEST_SUITE_P(Types, CapacityExample, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(Capacity, EvaluationMayHaveItsOwnFactor) {
  CapacityOptions options;
  options.factor = 1.5;
  EXPECT_EQ(capacity_factor(options, true), 1.5);
  EXPECT_EQ(capacity_factor(options, false), 1.5);
  options.eval_factor = 0;
  EXPECT_EQ(capacity_factor(options, false), 0);
}

}  // namespace sparsight::capacity_test
