#include "sparsight/analysis/output_redundancy.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::output_redundancy_test {
namespace {

constexpr int64_t kWidth = 6, kExperts = 5, kTokens = 20;
const TokenLayout kLayout{4, 5, 0, 0, 0};

std::shared_ptr<MoeLayer> random_layer() {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}, {"hidden", 8}}},
                                      {"losses", Json::object()},
                                      {"router", {{"name", "softmax_topk"}, {"k", 2}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 8});
  initialize(*layer, 1);
  layer->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters()) p.value().copy_(test::random_tensor(p.value().sizes(), p.key().size()));
  return layer;
}

std::shared_ptr<ImageModel> small_vit(const std::string& scope) {
  Config config;
  for (const std::string setting : {"model.name=vit", "model.width=16", "model.depth=3", "model.heads=2",
                                    "model.patch=4", "moe.blocks=[0,2]", "moe.experts=4", "router.k=2"})
    config.set(setting);
  config.set("router.scope=" + scope);
  auto model = make_model(resolve(config, config_sections()), {3, 8, 8, 5}, {});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->named_parameters())
    if (p.value().dim() > 1) p.value().add_(0.3 * test::random_tensor(p.value().sizes(), p.key().size()));
  return model;
}

}  // namespace

TEST(OutputRedundancy, IsTheRelativeDistanceOnTheSameInput) {
  const auto layer = random_layer();
  const torch::NoGradGuard no_grad;
  const MoeInput clean{test::random_tensor({kTokens, kWidth}, 4), kLayout};
  const MoeInput moved{clean.tokens + 0.3 * test::random_tensor({kTokens, kWidth}, 5), kLayout};
  const Routing before = layer->route(clean), after = layer->route(moved);
  const OutputRedundancy found = output_redundancy(*layer, clean, before, after, 1);
  const at::Tensor y = layer->apply(clean, before), other = layer->apply(clean, after);
  double sum = 0;
  int64_t count = 0;
  const at::Tensor changes = token_changes(kept_sets(before), kept_sets(after)).reshape({-1});
  for (int64_t t = 0; t < kTokens; ++t)
    if (changes[t].item<double>() > 0) {
      sum += (other[t] - y[t]).norm().item<double>() / y[t].norm().item<double>();
      ++count;
    }
  ASSERT_GT(count, 2);
  EXPECT_EQ(found.tokens, count);
  EXPECT_NEAR(found.attacked, sum / static_cast<double>(count), 1e-9);
  EXPECT_GT(found.random, 0);
}

// Experts that are all copies of one compute the same: with gates of the other input, any experts give one output.
TEST(OutputRedundancy, CopiesOfOneExpertAreRedundant) {
  const auto layer = random_layer();
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters())
    if (p.key().starts_with("experts")) p.value().copy_(p.value().select(0, 0).unsqueeze(0).expand_as(p.value()));
  const MoeInput clean{test::random_tensor({kTokens, kWidth}, 4), kLayout};
  const Routing before = layer->route(clean), other = with_random_experts(before, 9);
  const OutputRedundancy found = output_redundancy(*layer, clean, before, other, 1);
  EXPECT_GT(found.tokens, 5);
  EXPECT_LT(found.attacked, 1e-12);
  EXPECT_LT(found.random, 1e-12);
  EXPECT_EQ(output_redundancy(*layer, clean, before, before, 1).tokens, 0);
}

TEST(OutputRedundancy, RandomExpertsAreDistinctAndUniform) {
  Routing routing = route_softmax_topk(test::random_tensor({20000, 8}, 1), {}, 0, 2, false);
  routing.layer = "moe";
  routing.layout = {100, 200, 0, 0, 0};
  const Routing random = with_random_experts(routing, 3);
  EXPECT_TRUE(torch::equal(random.gate, routing.gate));
  EXPECT_TRUE(torch::equal(with_random_experts(routing, 3).expert, random.expert));
  const at::Tensor pairs = random.expert.view({20000, 2});
  EXPECT_FALSE(pairs.select(1, 0).eq(pairs.select(1, 1)).any().item<bool>());
  EXPECT_NEAR(routing_change(kept_sets(routing), kept_sets(random)).rate(), chance_change_rate(8, 2), 0.015);
  Routing experts_choose = routing;
  experts_choose.per_token = 0;
  EXPECT_NE(testing::error_text([&] { with_random_experts(experts_choose, 1); }).find("for each token"),
            std::string::npos);
}

TEST(OutputRedundancy, OfEveryLayerOfAModel) {
  for (const char* scope : {"layer", "model"}) {
    const auto model = small_vit(scope);
    const torch::NoGradGuard no_grad;
    ModelInput clean, attacked;
    clean.images = (0.5 + 0.2 * test::random_tensor({6, 3, 8, 8}, 2, torch::kFloat)).clamp(0, 1);
    attacked.images = (clean.images + 0.2 * test::random_tensor({6, 3, 8, 8}, 3, torch::kFloat)).clamp(0, 1);
    const Routings after = to_routings(model->forward(attacked));
    const auto found = output_redundancy(*model, clean, after, 1);
    ASSERT_EQ(found.size(), 2u);
    for (const char* layer : {"blocks.0.mlp", "blocks.2.mlp"}) {
      EXPECT_GT(found.at(layer).tokens, 0) << layer;
      EXPECT_GT(found.at(layer).attacked, 0) << layer;
    }
    for (const auto& [layer, same] : output_redundancy(*model, clean, to_routings(model->forward(clean)), 1))
      EXPECT_EQ(same.tokens, 0) << layer;
    EXPECT_NE(testing::error_text([&] { output_redundancy(*model, clean, {}, 1); }).find("no attacked routing"),
              std::string::npos);
  }
}

}  // namespace sparsight::output_redundancy_test
