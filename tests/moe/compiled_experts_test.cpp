// Experts without tensors (engine/experts.h) made from layers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::compiled_experts_test {
namespace {

constexpr int64_t kExperts = 5, kRows = 6;
const std::vector<int64_t> kOffsets{0, 1, 2, 4, 4, 6};  // one expert has no rows

std::shared_ptr<Experts> build_experts(const std::string& kind, int64_t width, int64_t hidden) {
  auto experts = expert_kinds().make(kind, Json::object(), "experts", ExpertShape{kExperts, width, hidden});
  initialize(*experts, 1);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : experts->parameters()) p.mul_(20);  // far from zero, so that every weight shows
  return experts;
}

at::Tensor apply_rows(const engine::Experts& experts, const at::Tensor& rows) {
  cpu::OwnThreads threads(2);
  at::Tensor out = at::empty({rows.size(0), experts.outputs()});
  experts.run_rows(threads, rows.const_data_ptr<float>(), kOffsets.data(), out.data_ptr<float>());
  return out;
}

}  // namespace

TEST(CompiledExperts, GiveTheSameInFp32AndCloseOutputsInFewerBitsAtEveryLevel) {
  const torch::NoGradGuard no_grad;
  test::at_each_level([](const std::string& level) {
    for (const auto& [width, hidden] : {std::pair<int64_t, int64_t>{4, 7}, {72, 400}}) {
      const auto experts = build_experts("mlp", width, hidden);
      const at::Tensor rows = test::random_tensor({kRows, width}, 3, torch::kFloat);
      const at::Tensor plain = experts->forward(rows, at::tensor(kOffsets, at::kLong));
      const double scale = plain.abs().max().item<double>();
      for (const bool packs : {false, true})
        EXPECT_TRUE(test::near(apply_rows(*experts->compile({.packs_experts = packs}), rows), plain, 1e-5 * scale))
            << level;
      for (const WeightType type : {WeightType::bf16, WeightType::int8}) {
        const at::Tensor fewer = apply_rows(*experts->compile({.type = type}), rows);
        EXPECT_TRUE(test::near(fewer, plain, 0.03 * scale)) << level;
        EXPECT_FALSE(torch::equal(fewer, plain)) << level;
      }
    }
  });
}

TEST(CompiledExperts, ShareNothingUnlessTheyAreNotPacked) {
  const torch::NoGradGuard no_grad;
  for (const bool packs : {true, false}) {
    const auto experts = build_experts("mlp", 4, 7);
    const at::Tensor rows = test::random_tensor({kRows, 4}, 3, torch::kFloat);
    const auto compiled = experts->compile({.packs_experts = packs});
    const at::Tensor before = apply_rows(*compiled, rows);
    for (at::Tensor& p : experts->parameters()) p.zero_();  // training goes on
    EXPECT_EQ(torch::equal(apply_rows(*compiled, rows), before), packs);
  }
}

// 8 D F bytes of weights in fp32, 4 D F in bf16, 2 D F and 4 (D + F) of scales in int8, and 4 (D + F) of biases. Whole
// tiles.
TEST(CompiledExperts, HaveTheBytesOfTheirType) {
  constexpr int64_t kWide = 128, kHidden = 256, kScales = 4 * (kWide + kHidden);
  const auto experts = build_experts("mlp", kWide, kHidden);
  const auto bytes = [&](WeightType type) { return experts->compile({.type = type})->bytes() / kExperts; };
  EXPECT_EQ(bytes(WeightType::fp32), 8 * kWide * kHidden + kScales);
  EXPECT_EQ(bytes(WeightType::bf16), 4 * kWide * kHidden + kScales);
  EXPECT_EQ(bytes(WeightType::int8), 2 * kWide * kHidden + 2 * kScales);
}

// A weight of an output that is not finite makes that output NaN, and no other.
TEST(CompiledExperts, NonFiniteWeightsMakeTheirOutputNaNInInt8) {
  const torch::NoGradGuard no_grad;
  const auto experts = build_experts("mlp", 4, 7);
  experts->named_parameters()["w2"][0][3][2] = std::numeric_limits<float>::infinity();
  const at::Tensor y =
      apply_rows(*experts->compile({.type = WeightType::int8}), test::random_tensor({kRows, 4}, 3, torch::kFloat));
  EXPECT_TRUE(y[0][2].isnan().item<bool>());
  EXPECT_EQ(y.isnan().sum().item<int64_t>(), 1);
}

}  // namespace sparsight::compiled_experts_test
