// The balance losses of the worked example of routing under attack, and which of them a router trains with.
#include <algorithm>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routers/cosine.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/validate_router.h"
#include "tests/moe/robust_moe_example.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace sparsight::robust_moe_losses_test {
namespace {

MoeSpec make_spec(int64_t experts, const Json& router, const Json& losses) {
  return read_moe_spec({{"moe", {{"experts", experts}, {"hidden", 8}}}, {"losses", losses}, {"router", router}});
}

// "vmoe_importance=0.005 ...": what the layer trains with.
std::string describe_losses(int64_t experts, const Json& router, const Json& losses = Json::object()) {
  MoeLayer layer(make_spec(experts, router, losses), {"blocks.1.mlp", 4, 8});
  std::string text;
  const LossOptions& weights = layer.policy().losses;
  for (size_t i = 0; i < weights.weights.size(); ++i)
    if (weights.weights[i] > 0)
      text += (text.empty() ? "" : " ") + cat(routing_losses()[i].name, "=", weights.weights[i]);
  return text;
}

}  // namespace

TEST(RobustMoeLosses, A14_ReproduceTheWorkedExample) {
  const Routing clean = test::routed_group(test::clean_group(), 6);
  EXPECT_NEAR(vmoe_importance_loss(clean).item<double>(), 0.147811, 1e-6);
  EXPECT_NEAR(switch_loss(clean, "first").item<double>(), 1.268390, 1e-6);
  const Routing noisy = route_softmax_topk(test::clean_group(), test::group_noise(), 1.0 / 3, 2, false);
  EXPECT_NEAR(vmoe_load_loss(noisy).item<double>(), 0.081994, 1e-6);
  const at::Tensor uniform = torch::zeros({6, 3}, torch::kDouble);
  EXPECT_NEAR(vmoe_importance_loss(route_softmax_topk(uniform, {}, 0, 2, false)).item<double>(), 0, 1e-15);
  // Uniform probabilities, but first choices of every expert twice.
  Routing balanced = route_softmax_topk(uniform, {}, 0, 1, false);
  balanced.expert = torch::tensor({0, 1, 2, 0, 1, 2}, torch::kLong);
  EXPECT_NEAR(switch_loss(balanced, "first").item<double>(), 1, 1e-12);
}

// With the noise fixed; the threshold moves with the logits.
TEST(RobustMoeLosses, A14_GradientsAgreeWithCentralDifferences) {
  at::Tensor logits = test::clean_group();
  logits[2][1] += 0.05;  // with the noise, the second best is tied in these rows
  logits[3][0] += 0.05;
  const auto route = [&] { return route_softmax_topk(logits, test::group_noise(), 1.0 / 3, 2, false); };
  EXPECT_LT(test::gradient_error([&] { return vmoe_importance_loss(route()); }, {logits}), 1e-8);
  EXPECT_LT(test::gradient_error([&] { return vmoe_load_loss(route()); }, {logits}), 1e-8);
  EXPECT_LT(test::gradient_error([&] { return switch_loss(route(), "first"); }, {logits}), 1e-8);
}

TEST(RobustMoeLosses, A15_TheLoadLossIsRefusedWithoutNoise) {
  const auto message = [](const Json& router, const Json& losses) {
    return testing::error_text<UsageError>([&] { MoeLayer(make_spec(4, router, losses), {"blocks.1.mlp", 4, 8}); });
  };
  EXPECT_EQ(message({{"name", "softmax_topk"}, {"noise", 0}}, {{"vmoe_load", 0.005}}),
            "[losses] vmoe_load = 0.005 needs router noise, but the router softmax_topk of the layer blocks.1.mlp has "
            "none; set losses.vmoe_load = 0, or turn on the noise of a router that has it (router.noise)");
  EXPECT_NE(message({{"name", "noisy_topk"}, {"noise", false}}, {{"load", 0.1}}), "");
  EXPECT_NE(message({{"name", "cosine"}, {"noise", 0}}, {{"vmoe_load", 0.005}}), "");
  EXPECT_NE(message({{"name", "dense_softmax"}}, {{"load", 0.1}}), "");
  EXPECT_EQ(message({{"name", "softmax_topk"}}, {{"vmoe_load", 0.005}}), "");
  EXPECT_EQ(message({{"name", "noisy_topk"}}, {{"load", 0.1}}), "");
  EXPECT_EQ(message({{"name", "softmax_topk"}, {"noise", 0}}, {{"vmoe_load", 0}}), "");
}

TEST(RobustMoeLosses, A15_DefaultsFollowTheNoiseAndTheNumberOfExperts) {
  EXPECT_EQ(describe_losses(4, {{"name", "softmax_topk"}}), "vmoe_importance=0.005 vmoe_load=0.005");
  EXPECT_EQ(describe_losses(4, {{"name", "softmax_topk"}, {"noise", 0}}), "vmoe_importance=0.005");
  EXPECT_EQ(describe_losses(4, {{"name", "noisy_topk"}, {"noise", false}}), "importance=0.1");
  // GShard's loss counts first choices.
  EXPECT_EQ(describe_losses(2, {{"name", "softmax_topk"}}), "switch=0.01");
  MoeLayer two(make_spec(2, {{"name", "softmax_topk"}}, Json::object()), {"blocks.1.mlp", 4, 8});
  EXPECT_EQ(two.policy().losses.variants.switch_counts, "first");
  // Weights that are given stay.
  EXPECT_EQ(describe_losses(2, {{"name", "softmax_topk"}}, {{"vmoe_load", 0.1}, {"switch", 0}}), "vmoe_load=0.1");
}

}  // namespace sparsight::robust_moe_losses_test
