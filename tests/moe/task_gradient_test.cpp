// What a noisy router that starts at zero learns from the task loss alone (S10): layers with their own experts, a loss
// on their output, no auxiliary losses. If a token has one choice, its gate is always 1.
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::task_gradient_test {
namespace {

constexpr int64_t kTokens = 50, kWidth = 4, kExperts = 8;

std::shared_ptr<MoeLayer> build_layer(const Json& router, at::ScalarType type) {
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}}},
                                      {"experts", {{"name", "mlp"}}},
                                      {"losses", {{"importance", 0}, {"load", 0}}},
                                      {"router", router}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 7});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->experts().parameters()) p.mul_(20);  // outputs of the size of the targets
  return layer;
}

// The squared distance of the output from a target.
at::Tensor task_loss(MoeLayer& layer, at::ScalarType type) {
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, type),
                   target = test::random_tensor({kTokens, kWidth}, 4, type);
  const MoeOutput out = layer.forward({x, {1, kTokens, 0, 0, 0}, ForwardMode::training(), {5, 6}});
  EXPECT_TRUE(out.routing.losses.empty());
  return (out.tokens - target).square().sum();
}

// The largest gradient of each of the router's weights. Those of the experts are there in any case.
std::map<std::string, double> router_gradients(const Json& router, at::ScalarType type) {
  auto layer = build_layer(router, type);
  for (const at::Tensor& p : layer->router().parameters()) EXPECT_EQ(p.abs().max().item<double>(), 0);
  task_loss(*layer, type).backward();
  for (const auto& p : layer->experts().named_parameters())
    EXPECT_GT(p.value().grad().abs().max().item<double>(), 1e-3) << p.key();
  std::map<std::string, double> largest;
  for (const auto& p : layer->router().named_parameters()) {
    const at::Tensor grad = p.value().grad();
    largest[p.key()] = grad.defined() ? grad.abs().max().item<double>() : 0;
  }
  return largest;
}

void expect_gradient(double largest, bool wanted, const std::string& what) {
  if (wanted)
    EXPECT_GT(largest, 1e-3) << what;
  else
    EXPECT_EQ(largest, 0) << what;
}

}  // namespace

class TaskGradient : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(TaskGradient, S10_ReachesARouterAtZeroForSeveralChoicesButNotForOne) {
  for (const int64_t k : {1, 2, 3}) {
    const auto largest = router_gradients({{"name", "noisy_topk"}, {"k", k}}, GetParam());
    EXPECT_EQ(largest.size(), 2u);
    for (const auto& [name, gradient] : largest) expect_gradient(gradient, k > 1, cat(name, " for k = ", k));
  }
}

// A gate is that of the group times that of the expert in it: each level learns where it has a choice of several.
TEST_P(TaskGradient, S10_ReachesEachOfTwoLevelsForSeveralChoicesThere) {
  for (const int64_t k_groups : {1, 2})
    for (const int64_t k : {1, 2}) {
      const auto largest =
          router_gradients({{"name", "hierarchical"}, {"groups", 4}, {"k_groups", k_groups}, {"k", k}}, GetParam());
      EXPECT_EQ(largest.size(), 4u);
      for (const auto& [name, gradient] : largest)
        expect_gradient(gradient, (name.starts_with("group_") ? k_groups : k) > 1,
                        cat(name, " for ", k_groups, " groups and k = ", k));
    }
}

INSTANTIATE_TEST_SUITE_P(Types, TaskGradient, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(TaskGradientOfTheLayer, S10_AgreesWithCentralDifferencesAtZero) {
  for (const Json& router : {Json{{"name", "noisy_topk"}, {"k", 2}}, Json{{"name", "hierarchical"}, {"groups", 4}}}) {
    auto layer = build_layer(router, torch::kDouble);
    const auto loss = [&] { return task_loss(*layer, torch::kDouble); };
    EXPECT_LT(test::gradient_error(loss, layer->router().parameters(), 1e-6), 1e-6) << router;
  }
}

}  // namespace sparsight::task_gradient_test
