// Losses of several routers: balance losses are summed, the guided loss is averaged (Daxberger et al. 2023; the
// specification's router_sharing = per_layer).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/routed/router_losses.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/losses/targets.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::over_routers_test {
namespace {

at::Tensor number(double value) { return torch::tensor(value, torch::kDouble).requires_grad_(true); }

// Two routers of images that see four experts, with guidance and the importance loss.
std::shared_ptr<ImageModel> two_routers() {
  const Json config{{"moe", {{"blocks", {1, 2}}, {"experts", 4}}},
                    {"experts", {{"name", "mlp"}}},
                    {"capacity", Json::object()},
                    {"losses", {{"superclass", 0.3}, {"vmoe_importance", 0.01}}},
                    {"router", {{"name", "per_image"}, {"scope", "layer"}}}};
  auto model = models().make("vit", {{"width", 8}, {"depth", 3}, {"heads", 2}, {"patch", 4}}, "model",
                             ModelContext{{1, 8, 8, 3}, read_moe_spec(config)});
  initialize(*model, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->named_parameters())
    if (p.key() == "blocks.1.mlp.router.weight")
      p.value().zero_();
    else if (p.key() == "blocks.2.mlp.router.weight")
      p.value().mul_(100);
  return model;
}

ModelOutput pass(ImageModel& model) {
  ModelInput input{test::random_tensor({3, 1, 8, 8}, 3, torch::kFloat), ForwardMode::training(), {1, 2}};
  input.info.target = torch::eye(4).slice(0, 0, 3);
  return model.forward(input);
}

}  // namespace

// Two routers with guided losses 1 and 5: 3 in all, with half of the gradient each; importance 2 and 4: 6.
TEST(OverRouters, M13_GuidedLossesAreAveragedAndOthersSummed) {
  const at::Tensor one = number(1), five = number(5), two = number(2), four = number(4);
  std::vector<NamedLoss> losses{{"superclass", one, 0.3, OverRouters::mean},
                                {"importance", two, 0.1},
                                {"superclass", five, 0.3, OverRouters::mean},
                                {"importance", four, 0.1}};
  average_over_routers(losses);
  at::Tensor total = torch::zeros({}, torch::kDouble);
  for (const NamedLoss& loss : losses) total = total + loss.weight * loss.value;
  EXPECT_TRUE(test::near(total, torch::tensor(0.3 * 3 + 0.1 * 6, torch::kDouble), 1e-12));
  total.backward();
  EXPECT_TRUE(test::near(one.grad(), torch::tensor(0.15, torch::kDouble), 1e-12));
  EXPECT_TRUE(test::near(five.grad(), torch::tensor(0.15, torch::kDouble), 1e-12));
  EXPECT_TRUE(test::near(two.grad(), torch::tensor(0.1, torch::kDouble), 1e-12));
  std::vector<NamedLoss> alone{{"superclass", one, 0.3, OverRouters::mean}};
  average_over_routers(alone);
  EXPECT_TRUE(alone[0].value.is_same(one));  // a single router's loss stays as it is, bit for bit
}

TEST(OverRouters, TheGuidedLossAloneIsDeclaredAsAMean) {
  for (const RoutingLoss& loss : routing_losses())
    EXPECT_EQ(loss.over_routers == OverRouters::mean, loss.name == "superclass") << loss.name;
}

// The first router is undecided: ln 4.
TEST(OverRouters, M13_AModelWithARouterInEachLayerHasTheMeanOfTheirGuidedLosses) {
  const auto model = two_routers();
  const ModelOutput out = pass(*model);
  ASSERT_EQ(out.routings.size(), 2u);
  const double first = superclass_loss(out.routings[0]).item<double>(),
               second = superclass_loss(out.routings[1]).item<double>();
  EXPECT_NEAR(first, 1.386294, 1e-6);
  EXPECT_GT(std::abs(second - first), 0.01);
  double guided = 0;
  int importance = 0;
  for (const NamedLoss& loss : out.losses)
    if (loss.name == "superclass")
      guided += loss.value.item<double>();
    else
      ++importance;
  EXPECT_NEAR(guided, (first + second) / 2, 1e-6);
  EXPECT_EQ(importance, 2);
  // An attack on the loss, with the weight of training or with its own.
  RouterLossOptions attacked;
  attacked.router_losses = {"superclass"};
  EXPECT_NEAR(router_loss(out, attacked).item<double>(), 0.3 * guided, 1e-6);
  attacked.router_losses = {"superclass=2"};
  EXPECT_NEAR(router_loss(out, attacked).item<double>(), 2 * guided, 1e-6);
}

}  // namespace sparsight::over_routers_test
