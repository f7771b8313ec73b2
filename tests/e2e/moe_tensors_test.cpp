// Tensors that `sparsight moe` reads and writes for routers of other kinds: soft, hashed, guided.
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "tests/e2e/moe_verb.h"

namespace sparsight::testing::moe_tensors_test {
namespace {

std::vector<std::string> in_type(bool float64, std::vector<std::string> flags = {}) {
  if (float64) flags.push_back("--float64");
  return flags;
}

}  // namespace

// One image of two tokens, two experts with a slot each: exp(logits) = (1 3; 1 1). Columns over their sums 2 and 4 are
// (1/2 3/4; 1/2 1/4), rows over theirs 4 and 2 (1/4 3/4; 1/2 1/2). Tokens are unit vectors, the second expert doubles:
// its slots give (1/2 1/2) and 2 (3/4 1/4), the tokens get 1/4 and 3/4 of these, and half of each.
TEST(MoeVerbOnSoftRouting, WritesLogitsDispatchAndCombine) {
  const at::Tensor one = at::eye(2, at::kDouble), logits = matrix({1, 3, 1, 1}, 2).log();
  const NamedTensors input{{"tokens", one.view({1, 2, 2})},
                           {"router.weight", logits.t().contiguous()},
                           {"experts.w1", at::stack({one, 2 * one})}};
  const std::vector<std::string> settings{"router.name=soft_moe", "router.normalize=false", "moe.experts=2",
                                          "experts.name=linear", "experts.bias=false"};
  for (const bool float64 : {true, false}) {
    const Trial probe = run_moe(input, with_settings(settings, in_type(float64)));
    ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
    const double tolerance = float64 ? 1e-12 : 1e-6;
    const auto check = [&](const std::string& name, const Rows& values) {
      expect_near(probe, name, matrix(values, 2).unsqueeze(0), tolerance);
    };
    check("logits", {0, std::log(3), 0, 0});
    check("dispatch", {.5, .75, .5, .25});
    check("combine", {.25, .75, .5, .5});
    check("output", {1.25, .5, 1, .5});
    for (const std::string chosen : {"token", "expert", "gate", "gates", "kept", "chosen_count", "importance"})
      EXPECT_FALSE(probe.tensors.count(chosen)) << chosen;
  }
}

// What it writes can be given back, the counters of a router's updates included.
TEST(MoeVerbOnCounters, TheyStayWholeNumbers) {
  const std::vector<std::string> settings{"router.name=sigmoid_bias", "moe.experts=5", "experts.name=linear"};
  for (const bool float64 : {true, false}) {
    const NamedTensors input{{"tokens", at::eye(5, at::kDouble)},
                             {"router.steps", at::tensor({7}, at::kLong).squeeze(0)}};
    const Trial first = run_moe(input, with_settings(settings, in_type(float64)));
    ASSERT_EQ(first.result.exit_code, 0) << first.result.err;
    ASSERT_EQ(first.tensors.at("router.steps").scalar_type(), at::kLong);
    EXPECT_EQ(first.tensors.at("router.steps").item<int64_t>(), 7);
    EXPECT_EQ(first.tensors.at("router.bias").scalar_type(), float64 ? at::kDouble : at::kFloat);
  }
}

// The first number of SplitMix64 from the seed hash_combine(7, id), modulo 5, where hash_combine(7, id) is number id +
// 1 of SplitMix64 from the seed 7; for the ids 0 to 9 this is 1 1 2 2 2 1 4 4 2 0 (computed in Python).
TEST(MoeVerbOnHashing, HashesTheIdsOfTheFileOrThePositions) {
  const std::vector<std::string> settings{"router.name=hash", "router.k=1", "router.seed=7", "moe.experts=5",
                                          "experts.name=linear"};
  const NamedTensors input{{"tokens", at::eye(5, at::kDouble)}};
  for (const bool float64 : {true, false}) {
    const Trial by_position = run_moe(input, with_settings(settings, in_type(float64)));
    ASSERT_EQ(by_position.result.exit_code, 0) << by_position.result.err;
    expect_whole(by_position, "expert", {1, 1, 2, 2, 2});
    NamedTensors with_ids = input;
    with_ids.emplace_back("token_id", at::tensor({4, 4, 9, 0, 6}, at::kInt));
    const Trial by_id = run_moe(with_ids, with_settings(settings, in_type(float64)));
    ASSERT_EQ(by_id.result.exit_code, 0) << by_id.result.err;
    expect_whole(by_id, "expert", {2, 2, 0, 1, 4});
    expect_whole(by_id, "chosen_count", {1, 1, 2, 0, 1});
    expect_near(by_id, "gate", at::ones({5}, at::kDouble), 0);
    EXPECT_FALSE(by_id.tensors.count("scores"));  // it has none
  }
}

// An image of five tokens whose mean gives the logits (1, 2, 0): p = (.244728, .665241, .090031). The loss of the
// target (1, 0, 0) is -ln .244728 = 1.407606 and its gradient p - target, times 0.3, the weight of the paper, in
// d(loss)/d(weight) of tokens of 1. For (0, .75, .25): .75 * .407606 + .25 * 2.407606 = .907606.
TEST(MoeVerbOnGuidedRouting, TargetsGiveTheLossOfSuperclasses) {
  const std::vector<std::string> settings{"router.name=per_image", "router.norm=none", "moe.experts=3",
                                          "experts.name=linear"};
  const NamedTensors input{{"tokens", at::ones({1, 5, 1}, at::kDouble)},
                           {"router.weight", at::tensor({1., 2., 0.}, at::kDouble).view({3, 1})}};
  const at::Tensor p = at::tensor({.244728, .665241, .090031}, at::kDouble);
  for (const bool float64 : {true, false})
    for (const auto& [target, loss] : {std::pair<Rows, double>{{1, 0, 0}, 1.407606}, {{0, .75, .25}, .907606}}) {
      NamedTensors guided = input;
      guided.emplace_back("target", matrix(target, 1));
      const Trial probe = run_moe(guided, with_settings(settings, in_type(float64, {"--mode", "train"})));
      ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
      const double tolerance = printed_digits(float64);
      expect_whole(probe, "expert", {1, 1, 1, 1, 1});  // a target trains the router, it does not choose
      EXPECT_NEAR(probe.tensors.at("loss.superclass").item<double>(), loss, tolerance);
      EXPECT_EQ(probe.tensors.at("loss_weight.superclass").item<double>(), 0.3);
      expect_near(probe, "grad.router.weight", (0.3 * (p - matrix(target, 1))).view({3, 1}), tolerance);
    }
}

}  // namespace sparsight::testing::moe_tensors_test
