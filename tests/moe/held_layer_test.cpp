// Layers whose experts are held for inference.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::held_layer_test {
namespace {

constexpr int64_t kTokens = 6, kWidth = 4;

std::shared_ptr<MoeLayer> layer_of(const std::string& experts, int64_t shared) {
  MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                {"losses", Json::object()},
                                {"experts", {{"name", experts}}},
                                {"router", {{"name", "softmax_topk"}, {"k", 2}}}});
  spec.options.experts = 5;
  spec.options.shared = shared;
  auto layer = std::make_shared<MoeLayer>(spec, MoePlace{"moe", kWidth, 7});
  initialize(*layer, 1);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->parameters()) p.mul_(20);  // far from zero, so that every weight shows
  return layer;
}

at::Tensor answer(MoeLayer& layer, const at::Tensor& tokens) {
  return layer.forward({tokens, {1, kTokens, 0, 0, 0}, ForwardMode::evaluation(), {5, 6}}).tokens;
}

at::Tensor some_tokens() { return test::random_tensor({kTokens, kWidth}, 3, torch::kFloat); }

}  // namespace

TEST(HeldLayer, GivesTheSameAnswersInFp32AndCloseOnesInFewerBits) {
  const torch::NoGradGuard no_grad;
  const at::Tensor tokens = some_tokens();
  for (const int64_t shared : {0, 1})
    for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
      const auto layer = layer_of("mlp", shared);
      const at::Tensor before = answer(*layer, tokens);
      EXPECT_EQ(hold_experts(*layer, type), 1);
      const at::Tensor held = answer(*layer, tokens);
      EXPECT_EQ(torch::equal(held, before), type == WeightType::fp32);
      EXPECT_LT((held - before).abs().max().item<double>(), 0.03 * before.abs().max().item<double>());
    }
}

TEST(HeldLayer, GivesItsParametersUpAndRefusesGradients) {
  const auto layer = layer_of("mlp", 0);
  EXPECT_EQ(hold_experts(*layer, WeightType::fp32), 1);
  EXPECT_EQ(layer->named_parameters().find("experts.w1")->numel(), 0);
  EXPECT_EQ(hold_experts(*layer, WeightType::int8), 0);
  const auto refusal = [&] { return testing::message_of([&] { answer(*layer, some_tokens().requires_grad_(true)); }); };
  EXPECT_NE(refusal().find("held for inference"), std::string::npos);
}

TEST(HeldLayer, KindsThatCannotBeHeldStayAsTheyAre) {
  const torch::NoGradGuard no_grad;
  const auto layer = layer_of("swiglu", 0);
  const at::Tensor before = answer(*layer, some_tokens());
  EXPECT_EQ(hold_experts(*layer, WeightType::fp32), 0);
  EXPECT_TRUE(torch::equal(answer(*layer, some_tokens()), before));
}

}  // namespace sparsight::held_layer_test
