// `sparsight moe` on the published worked example of capacity (spec T15): gates given, k = 2, so that the choices are
// [[0,1],[0,2],[0,1]]. Tokens are unit vectors, so that rows of logits are columns of weights: the softmax of the
// logarithms of gates that sum to 1 is the gates. Experts are E_i(x) = (i+1) x.
#include <ATen/ops/arange.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/eye.h>

#include "tests/e2e/moe_verb.h"

namespace sparsight::testing::moe_capacity_test {
namespace {

const Rows kGates{.50, .30, .15, .05, .60, .10, .25, .05, .70, .20, .05, .05};

NamedTensors example() {
  const at::Tensor scale = at::arange(1, 5, at::kDouble).view({4, 1, 1});
  return {{"tokens", at::eye(3, at::kDouble)},
          {"router.weight", matrix(kGates, 3).log().t().contiguous()},
          {"experts.w1", (scale * at::eye(3, at::kDouble)).contiguous()}};
}

Trial run_layer(const NamedTensors& input, const std::string& factor, const std::string& priority, bool float64) {
  const std::vector<std::string> settings{
      "router.name=softmax_topk",     "router.k=2",         "moe.experts=4",
      "experts.name=linear",          "experts.bias=false", "capacity.factor=" + factor,
      "capacity.priority=" + priority};
  return run_moe(input,
                 with_settings(settings, float64 ? std::vector<std::string>{"--float64"} : std::vector<std::string>{}));
}

// By token and then by rank, for the choices above.
struct Expected {
  int64_t capacity;
  std::vector<int64_t> kept, position, kept_count;
  Rows weights;
  Rows outputs;  // y_j is this times token j: the weights times 1, 2 or 3
};

void expect_probe(const Trial& probe, const Expected& expected, bool float64) {
  ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
  const double tolerance = float64 ? 1e-12 : 1e-6;  // the gates are given exactly
  expect_near(probe, "scores", matrix(kGates, 3), tolerance);
  expect_near(probe, "gate", at::tensor({.50, .30, .60, .25, .70, .20}, at::kDouble), tolerance);  // before drops
  expect_whole(probe, "token", {0, 0, 1, 1, 2, 2});
  expect_whole(probe, "rank", {0, 1, 0, 1, 0, 1});
  expect_whole(probe, "expert", {0, 1, 0, 2, 0, 1});
  expect_whole(probe, "chosen_count", {3, 2, 1, 0});
  EXPECT_EQ(probe.tensors.at("kept").scalar_type(), at::kBool);
  expect_whole(probe, "kept", expected.kept);
  expect_whole(probe, "position", expected.position);
  expect_whole(probe, "capacity", {expected.capacity});
  expect_whole(probe, "kept_count", expected.kept_count);
  const Rows& w = expected.weights;
  expect_near(probe, "gates", matrix({w[0], w[1], 0, 0, w[2], 0, w[3], 0, w[4], w[5], 0, 0}, 3), tolerance);
  expect_near(probe, "output", at::diag(at::tensor(expected.outputs, at::kDouble)), 4 * tolerance);
  EXPECT_EQ(probe.tensors.at("output").scalar_type(), float64 ? at::kDouble : at::kFloat);
}

const std::vector<int64_t> kInTokenOrder{0, 0, 1, 0, 2, 1}, kLargestGateFirst{2, 1, 1, 0, 0, 0};

}  // namespace

// C = ceil(1 * 2 * 3 / 4) = 2: the third first choice of expert 0 is dropped.
TEST(MoeVerbWithCapacity, TwoRowsForEachExpert) {
  for (const bool float64 : {true, false}) {
    expect_probe(run_layer(example(), "1", "none", float64),
                 {2, {1, 1, 1, 1, 0, 1}, kInTokenOrder, {2, 2, 1, 0}, {.50, .30, .60, .25, 0, .20}, {1.10, 1.35, .40}},
                 float64);
    expect_probe(
        run_layer(example(), "1", "max_gate", float64),
        {2, {0, 1, 1, 1, 1, 1}, kLargestGateFirst, {2, 2, 1, 0}, {0, .30, .60, .25, .70, .20}, {.60, 1.35, 1.10}},
        float64);
  }
}

// C = ceil(0.5 * 2 * 3 / 4) = 1. Positions are counted past the limit, so they are those of two rows.
TEST(MoeVerbWithCapacity, OneRowForEachExpert) {
  for (const bool float64 : {true, false}) {
    expect_probe(run_layer(example(), "0.5", "none", float64),
                 {1, {1, 1, 0, 1, 0, 0}, kInTokenOrder, {1, 1, 1, 0}, {.50, .30, 0, .25, 0, 0}, {1.10, .75, 0}},
                 float64);
    expect_probe(run_layer(example(), "0.5", "max_gate", float64),
                 {1, {0, 0, 0, 1, 1, 1}, kLargestGateFirst, {1, 1, 1, 0}, {0, 0, 0, .25, .70, .20}, {0, .75, 1.10}},
                 float64);
  }
}

// Priorities 1 3 2: tokens get slots in the order 1 2 0. First choices get the slots 2 0 1 of expert 0; of the second
// choices 1 2 1 token 2 comes before token 0 at expert 1. Neither token order nor gates would keep token 1's first.
TEST(MoeVerbWithCapacity, GivenPrioritiesDecideWhoAsksFirst) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    NamedTensors input = example();
    input.emplace_back("priority", at::tensor({1., 3., 2.}, type));
    const bool float64 = type == at::kDouble;
    expect_probe(run_layer(input, "0.5", "given", float64),
                 {1, {0, 0, 1, 1, 0, 1}, {2, 1, 0, 0, 1, 0}, {1, 1, 1, 0}, {0, 0, .60, .25, 0, .20}, {0, 1.35, .40}},
                 float64);
  }
}

TEST(MoeVerbWithCapacity, PrioritiesThatNobodyGaveAreOneClearLine) {
  const std::string line = one_line(run_layer(example(), "1", "given", true).result, 2);
  EXPECT_NE(line.find("needs a priority for each token, got none"), std::string::npos) << line;
  NamedTensors input = example();
  input.emplace_back("priority", at::tensor({1., 3.}, at::kDouble));
  const std::string wrong = one_line(run_layer(input, "1", "given", true).result, 1);
  EXPECT_NE(wrong.find("\"priority\" has the shape [2], expected [3]"), std::string::npos) << wrong;
}

// There is no limit to write down, and nothing is dropped.
TEST(MoeVerbWithCapacity, WithoutALimitThereAreNoSlots) {
  const Trial probe = run_layer(example(), "0", "none", true);
  ASSERT_EQ(probe.result.exit_code, 0) << probe.result.err;
  EXPECT_FALSE(probe.tensors.count("capacity") || probe.tensors.count("position"));
  expect_whole(probe, "kept", {1, 1, 1, 1, 1, 1});
  expect_whole(probe, "kept_count", {3, 2, 1, 0});
}

}  // namespace sparsight::testing::moe_capacity_test
