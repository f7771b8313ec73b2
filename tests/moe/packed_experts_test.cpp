// Experts packed for inference, and layers that use them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/live_bytes.h"
#include "tests/support/random_tensor.h"

namespace sparsight::packed_experts_test {
namespace {

constexpr int64_t kTokens = 6, kWidth = 4;

std::shared_ptr<MoeLayer> layer_of(const std::string& experts, int64_t shared) {
  MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                {"losses", Json::object()},
                                {"experts", {{"name", experts}}},
                                {"router", {{"name", "softmax_topk"}, {"k", 2}}}});
  spec.options.experts = 5;
  spec.options.shared = shared;
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 7});
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

TEST(PackedExperts, GiveTheSameOutputsInFp32AndCloseOnesInFewerBits) {
  const torch::NoGradGuard no_grad;
  const at::Tensor tokens = some_tokens();
  for (const int64_t shared : {0, 1})
    for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
      const auto layer = layer_of("mlp", shared);
      const at::Tensor before = answer(*layer, tokens);
      EXPECT_EQ(pack_experts(*layer, type), 1);
      const at::Tensor packed = answer(*layer, tokens);
      EXPECT_EQ(torch::equal(packed, before), type == WeightType::fp32);
      EXPECT_LT((packed - before).abs().max().item<double>(), 0.03 * before.abs().max().item<double>());
      EXPECT_EQ(pack_experts(*layer, type), 0) << "packed ones are not packed again";
    }
}

TEST(PackedExperts, AreAnotherObjectThatSharesNothing) {
  for (const WeightType type : {WeightType::fp32, WeightType::bf16, WeightType::int8}) {
    const auto layer = layer_of("mlp", 0);
    Experts& experts = layer->experts();
    const at::Tensor rows = some_tokens(), offsets = torch::tensor({0, 1, 2, 4, 4, 6}, torch::kLong);
    std::vector<at::Tensor> values;
    for (const at::Tensor& p : experts.parameters()) values.push_back(p.detach().clone());
    const std::shared_ptr<Experts> packed = experts.packed(type);
    ASSERT_NE(packed, nullptr);
    EXPECT_TRUE(packed->parameters().empty());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(torch::equal(experts.parameters()[i], values[i]));

    const torch::NoGradGuard no_grad;
    const at::Tensor before = packed->forward(rows, offsets);
    for (at::Tensor& p : experts.parameters()) p.zero_();  // training goes on
    EXPECT_TRUE(torch::equal(packed->forward(rows, offsets), before));
    EXPECT_EQ(experts.forward(rows, offsets).abs().sum().item<double>(), 0);
  }
}

TEST(PackedExperts, TheOriginalsStillLearn) {
  const auto layer = layer_of("mlp", 0);
  layer->experts().packed(WeightType::int8);
  answer(*layer, some_tokens()).sum().backward();
  for (const auto& p : layer->experts().named_parameters())
    EXPECT_GT(p.value().grad().abs().sum().item<double>(), 0) << p.key();
}

TEST(PackedExperts, ReplaceTheOriginalsAndFreeTheirMemory) {
  constexpr int64_t kExperts = 4, kWide = 128, kHidden = 128;  // whole tiles; below what the pool hands out
  MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                {"losses", Json::object()},
                                {"experts", {{"name", "mlp"}}},
                                {"router", {{"name", "softmax_topk"}}}});
  spec.options.experts = kExperts;
  const struct {
    WeightType type;
    int64_t bytes;  // of an expert's weights and scales: ops/packed_experts.h
  } cases[] = {{WeightType::fp32, 8 * kWide * kHidden},
               {WeightType::bf16, 4 * kWide * kHidden},
               {WeightType::int8, 2 * kWide * kHidden + 4 * (kWide + kHidden)}};
  for (const auto& c : cases) {
    const test::LiveBytes live;
    MoeLayer layer(spec, LayerContext{"moe", kWide, kHidden});
    initialize(layer, 1);
    const int64_t before = live.count();
    EXPECT_EQ(pack_experts(layer, c.type), 1);
    EXPECT_NEAR(static_cast<double>(before - live.count()), kExperts * (8.0 * kWide * kHidden - c.bytes), 8192.0);
    EXPECT_EQ(layer.named_parameters().find("experts.w1"), nullptr);
    EXPECT_NE(layer.named_parameters().find("router.weight"), nullptr);
  }
}

TEST(PackedExperts, RefuseGradientsAndDropout) {
  const auto layer = layer_of("mlp", 0);
  EXPECT_EQ(pack_experts(*layer, WeightType::fp32), 1);
  EXPECT_NE(
      testing::message_of([&] { answer(*layer, some_tokens().requires_grad_(true)); }).find("packed for inference"),
      std::string::npos);

  const torch::NoGradGuard no_grad;
  const at::Tensor rows = some_tokens(), offsets = torch::tensor({0, 3, 6}, torch::kLong);
  MlpExpertsOptions options;
  options.dropout = 0.5;
  MlpExperts dropping(options, {.experts = 2, .width = kWidth, .hidden = 7});
  initialize(dropping, 1);
  const std::shared_ptr<Experts> packed = dropping.packed(WeightType::fp32);
  EXPECT_TRUE(torch::equal(packed->forward(rows, offsets), dropping.forward(rows, offsets)));
  const RowContext training{ForwardMode::training(), {5, 6}, "moe.experts", torch::arange(kTokens, torch::kLong)};
  EXPECT_NE(testing::message_of([&] { packed->forward(rows, offsets, training); }).find("without gradients or dropout"),
            std::string::npos);
}

TEST(PackedExperts, KindsThatCannotBePackedStayAsTheyAre) {
  const torch::NoGradGuard no_grad;
  const auto layer = layer_of("swiglu", 0);
  const at::Tensor before = answer(*layer, some_tokens());
  EXPECT_EQ(layer->experts().packed(WeightType::fp32), nullptr);
  EXPECT_EQ(pack_experts(*layer, WeightType::fp32), 0);
  EXPECT_TRUE(torch::equal(answer(*layer, some_tokens()), before));
}

}  // namespace sparsight::packed_experts_test
