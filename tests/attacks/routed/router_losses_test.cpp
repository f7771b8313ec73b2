// Attacks on the routers' balance losses: which losses, with which weights, and their gradients.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/pgd.h"
#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::router_losses_test {
namespace {

using Loss = std::function<at::Tensor(const Routing&)>;

// The sum over layers of one loss, without gradients.
double loss_sum(AttackedModel& model, const AttackBatch& batch, const Loss& loss) {
  const torch::NoGradGuard no_grad;
  double sum = 0;
  for (const Routing& routing : model.forward(batch.pixels, {batch.image, 0}).routings)
    sum += loss(routing).item<double>();
  return sum;
}

Objective with(const std::vector<std::string>& losses, double task_weight = 1, double router_weight = 1) {
  Objective objective;
  objective.router.router_losses = losses;
  objective.router.task_weight = task_weight;
  objective.router.router_weight = router_weight;
  return objective;
}

at::Tensor pixel_gradient(AttackedModel& model, const Objective& objective, const AttackBatch& batch) {
  return evaluate_objective(model, objective, batch, batch.pixels, 0).gradient;
}

// The relative difference of the gradient from central differences, at pixels spread over the images, where the routing
// is the same on both sides.
double gradient_error(AttackedModel& model, const Objective& objective, const AttackBatch& batch) {
  const at::Tensor gradient = pixel_gradient(model, objective, batch);
  const double h = 1e-6, scale = gradient.abs().max().item<double>();
  double worst = 0;
  int64_t compared = 0;
  for (int64_t i = 0; i < batch.pixels.numel(); i += 37) {
    at::Tensor above = batch.pixels.clone(), below = batch.pixels.clone();
    above.view(-1)[i] += h;
    below.view(-1)[i] -= h;
    const auto routings = [&](const at::Tensor& x) {
      const torch::NoGradGuard no_grad;
      return model.forward(x, {batch.image, 0}).routings;
    };
    const std::vector<Routing> a = routings(above), b = routings(below);
    if (!torch::equal(a[0].expert, b[0].expert) || !torch::equal(a[1].expert, b[1].expert)) continue;
    const auto total = [&](const at::Tensor& x) {
      return evaluate_loss(model, objective, batch, x, 0).loss.sum().item<double>();
    };
    worst = std::max(worst, std::abs(gradient.view(-1)[i].item<double>() - (total(above) - total(below)) / (2 * h)));
    ++compared;
  }
  EXPECT_GT(compared, 10);
  return worst / scale;
}

}  // namespace

TEST(RouterLosses, A16_WeightsAreThoseOfTrainingOrGiven) {
  AttackedImageModel model(test::routed_vit({"losses.vmoe_importance=0.7"}), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 6);
  const auto value = [&](const Objective& objective) {
    return evaluate_loss(model, objective, batch, batch.pixels, 0).loss;
  };
  const double importance = loss_sum(model, batch, [](const Routing&r) { return vmoe_importance_loss(r); }),
               gshard = loss_sum(model, batch, [](const Routing&r) { return switch_loss(r, "first"); });
  EXPECT_NEAR(value(with({"vmoe_importance"}, 0))[0].item<double>(), 0.7 * importance, 1e-12);
  EXPECT_NEAR(value(with({"vmoe_importance=0.005"}, 0))[2].item<double>(), 0.005 * importance, 1e-12);
  EXPECT_NEAR(value(with({"gshard=0.01"}, 0))[3].item<double>(), 0.01 * gshard, 1e-12);
  EXPECT_NEAR(value(with({"gshard=0.01", "vmoe_importance"}, 0, 10))[0].item<double>(), 0.1 * gshard + 7 * importance,
              1e-11);
  EXPECT_TRUE(test::near(value(with({"gshard=0.01"})), value({}) + 0.01 * gshard, 1e-12));
}

TEST(RouterLosses, A16_TheGradientOfASumIsTheSumOfGradients) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 5);
  const at::Tensor task = pixel_gradient(model, {}, batch);
  for (const char* loss : {"vmoe_importance=0.005", "gshard=0.01", "router_z=0.001"})
    for (const double weight : {1.0, 10.0, 100.0, 1000.0}) {
      const Objective both = with({loss}, 1, weight), alone = with({loss}, 0, weight);
      const at::Tensor router = pixel_gradient(model, alone, batch);
      EXPECT_GT(router.abs().max().item<double>(), 0) << loss;
      EXPECT_TRUE(test::near(pixel_gradient(model, both, batch), task + router, 1e-9)) << loss << weight;
      if (weight != 100) continue;
      EXPECT_LT(gradient_error(model, both, batch), 1e-5) << loss;
      EXPECT_LT(gradient_error(model, alone, batch), 1e-5) << loss;
    }
}

TEST(RouterLosses, A16_ImportanceAndLoadWithNoiseAreMeansOverPasses) {
  AttackedImageModel model(test::routed_vit(), {.mode = test::losses_mode(true), .seed = 4});
  const AttackBatch batch = test::routed_images(model, 5);
  Objective one = with({"vmoe_importance", "vmoe_load"}, 1, 100), many = one;
  many.passes = 4;
  at::Tensor gradient = torch::zeros_like(batch.pixels);
  for (uint64_t pass = 0; pass < 4; ++pass)
    gradient += evaluate_objective(model, one, batch, batch.pixels, 8 + pass).gradient / 4;
  EXPECT_TRUE(test::near(evaluate_objective(model, many, batch, batch.pixels, 2).gradient, gradient, 1e-10));
  // The weights of training, 0.005 each.
  const double load = loss_sum(model, batch, [](const Routing& r) { return vmoe_load_loss(r); });
  EXPECT_NEAR(evaluate_loss(model, with({"vmoe_load"}, 0), batch, batch.pixels, 0).loss[0].item<double>(), 0.005 * load,
              1e-12);
  EXPECT_LT(gradient_error(model, with({"vmoe_load=1"}, 0), batch), 1e-5);
}

TEST(RouterLosses, A15_TheLoadLossIsRefusedWithoutNoise) {
  AttackedImageModel model(test::routed_vit(), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 3);
  for (const char* load : {"vmoe_load", "vmoe_load=0.005", "load=0.1"}) {
    const std::string message =
        testing::error_text([&] { evaluate_loss(model, with({load}), batch, batch.pixels, 0); });
    EXPECT_NE(message.find("defined only with router noise"), std::string::npos) << message;
  }
}

TEST(RouterLosses, NamesAndWeightsAreChecked) {
  const auto message = [](const char* loss) {
    PgdOptions options;
    options.objective.router.router_losses = {loss};
    return testing::error_text<UsageError>([&] { Pgd(options, {}); });
  };
  EXPECT_NE(message("gshard=much").find("a weight of at least 0"), std::string::npos);
  EXPECT_NE(message("gshard=-1").find("a weight of at least 0"), std::string::npos);
  EXPECT_NE(message("vmoe_importence=1").find("did you mean \"vmoe_importance\""), std::string::npos);
  EXPECT_EQ(message("gshard=0.5"), "");
  // A loss without a weight in training.
  AttackedImageModel model(test::routed_vit(), {.mode = test::losses_mode()});
  const AttackBatch batch = test::routed_images(model, 2);
  EXPECT_NE(testing::error_text([&] {
              evaluate_loss(model, with({"switch"}), batch, batch.pixels, 0);
            }).find("as in \"switch=0.005\""),
            std::string::npos);
}

}  // namespace sparsight::router_losses_test
