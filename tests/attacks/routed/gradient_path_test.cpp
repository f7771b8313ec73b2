// Gradients by other ways through MoE layers than the model's own.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/register_attacks.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/models/routings.h"
#include "sparsight/moe/moe_layer.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::gradient_path_test {
namespace {

Objective by(const std::string& through, double temperature = 1) {
  Objective objective;
  objective.path = {through, temperature};
  return objective;
}

at::Tensor moved(const AttackBatch& batch) {
  return (batch.pixels + 0.03 * test::random_tensor(batch.pixels.sizes(), 5).sign()).clamp(0, 1);
}

at::Tensor gradient_at(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                       const at::Tensor& pixels) {
  return evaluate_objective(model, objective, batch, pixels, 0).gradient;
}

// Checks the gradient of the summed cross entropy of `logits` by central differences at pixels spread over the images.
void expect_gradient(const at::Tensor& gradient, const at::Tensor& pixels, const AttackLabels& labels,
                     const std::function<at::Tensor(const at::Tensor&)>& logits) {
  const torch::NoGradGuard no_grad;
  const double h = 1e-6, scale = gradient.abs().max().item<double>();
  const auto total = [&](const at::Tensor& x) {
    return attack_loss::cross_entropy(logits(x), labels).sum().item<double>();
  };
  for (int64_t i = 0; i < pixels.numel(); i += 53) {
    at::Tensor above = pixels.clone(), below = pixels.clone();
    above.view(-1)[i] += h;
    below.view(-1)[i] -= h;
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), (total(above) - total(below)) / (2 * h), 1e-5 * scale) << i;
  }
}

}  // namespace

TEST(GradientPath, AMixtureIsTheSmoothModelAndResultsAreTheSparseOnes) {
  AttackedImageModel sparse(test::routed_vit());
  const AttackBatch batch = test::routed_images(sparse, 4);
  const at::Tensor pixels = moved(batch);
  const auto smooth_vit = test::routed_vit({"router.name=dense_softmax", "router.k=4"});
  for (const double temperature : {1.0, 2.0}) {
    const torch::NoGradGuard no_grad;
    for (const auto& p : smooth_vit->named_parameters())
      if (p.key().ends_with("router.weight")) p.value().div_(temperature);
    AttackedImageModel smooth(smooth_vit);
    const AttackEvaluation found = evaluate_objective(sparse, by("mixture", temperature), batch, pixels, 0),
                           model = evaluate_objective(sparse, {}, batch, pixels, 0);
    EXPECT_TRUE(test::near(found.gradient, gradient_at(smooth, {}, batch, pixels), 1e-10));
    EXPECT_FALSE(test::near(found.gradient, model.gradient, 1e-3));
    EXPECT_TRUE(torch::equal(found.loss, model.loss));
    EXPECT_TRUE(torch::equal(found.logits, model.logits));
  }
}

TEST(GradientPath, AMixtureOfAllChosenExpertsIsTheModel) {
  AttackedImageModel model(test::routed_vit({"router.k=4", "capacity.eval_factor=1"}));
  const AttackBatch batch = test::routed_images(model, 3);
  EXPECT_TRUE(test::near(gradient_at(model, by("mixture"), batch, moved(batch)),
                         gradient_at(model, {}, batch, moved(batch)), 1e-10));
}

TEST(GradientPath, ThroughTheExpertsTheRoutingIsTheCleanOne) {
  const auto vit = test::routed_vit();
  AttackedImageModel model(vit);
  const AttackBatch batch = test::routed_images(model, 3);
  Routings clean;
  {
    const torch::NoGradGuard no_grad;
    ModelInput input;
    input.images = batch.pixels;
    clean = to_routings(vit->forward(input));
  }
  expect_gradient(gradient_at(model, by("experts"), batch, moved(batch)), moved(batch), batch.labels,
                  [&](const at::Tensor& x) {
                    ModelInput input;
                    input.images = x;
                    input.routings = clean;
                    return vit->forward(input).logits;
                  });
}

TEST(GradientPath, ThroughTheRouterTheExpertsGetTheCleanTokens) {
  const auto vit = test::routed_vit();
  AttackedImageModel model(vit);
  const AttackBatch batch = test::routed_images(model, 3);
  std::map<std::string, at::Tensor> clean;
  bool record = true;
  const auto logits = [&](const at::Tensor& x) {
    ModelInput input;
    input.images = x;
    input.pre_experts_hook = [&](MoeLayer& layer, MoeInput& tokens, Routing&) {
      if (record) clean[layer.path()] = tokens.tokens;
      tokens.tokens = clean.at(layer.path());
    };
    return vit->forward(input).logits;
  };
  const torch::NoGradGuard no_grad;
  logits(batch.pixels);
  record = false;
  const at::Tensor near = batch.pixels + 1e-3 * test::random_tensor(batch.pixels.sizes(), 5).sign();
  expect_gradient(gradient_at(model, by("router"), batch, near), near, batch.labels, logits);
}

TEST(GradientPath, WorksWithOneRouterForAllLayersAndWithTheLossOfARouting) {
  AttackedImageModel model(test::routed_vit({"router.scope=model"}));
  const AttackBatch batch = test::routed_images(model, 4);
  const at::Tensor plain = gradient_at(model, {}, batch, moved(batch));
  for (const char* path : {"mixture", "experts", "router"}) {
    Objective objective = by(path);
    const at::Tensor gradient = gradient_at(model, objective, batch, moved(batch));
    EXPECT_TRUE(torch::isfinite(gradient).all().item<bool>()) << path;
    EXPECT_FALSE(test::near(gradient, plain, 1e-6)) << path;
    objective.routing.loss = "kl";
    EXPECT_FALSE(test::near(gradient_at(model, objective, batch, moved(batch)), gradient, 1e-9)) << path;
  }
}

// Every registered attack with a choice of losses.
TEST(GradientPath, EveryGradientAttackTakesItAndIsJudgedByTheModel) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 12);
  std::vector<std::string> tried;
  for (const std::string& name : attacks().names()) {
    Json settings = Json::object();
    bool chooses = false;
    attacks().get(name).describe([&](const OptionSet& set) {
      chooses = set.find("gradient") && set.find("routing_loss") && set.find("router_losses");
      if (set.find("steps")) settings["steps"] = 8;
    });
    if (!chooses) continue;
    tried.push_back(name);
    for (const char* path : {"mixture", "experts", "router"})
      for (const char* loss : {"none", "kl", "gate_gap"}) {
        settings["gradient"] = path, settings["routing_loss"] = loss;
        const auto attack = attacks().make(name, settings, "attack", AttackContext{{Norm::linf, .1, {}}, 2});
        const AttackResult result = attack->run(model, batch);
        const torch::NoGradGuard no_grad;
        const at::Tensor logits = model.forward(result.pixels, {batch.image, 0}).logits;
        EXPECT_TRUE(torch::equal(result.correct, classified_correctly(logits, batch.labels.label)));
        EXPECT_LT(result.correct.sum().item<int64_t>(), 12) << name << path << loss;
        EXPECT_GT(result.cost.queries, 2 * result.cost.gradients);  // each gradient costs a second pass
      }
  }
  EXPECT_EQ(tried, (std::vector<std::string>{"fgsm", "pgd", "apgd"}));
}

TEST(GradientPath, RefusesModelsWithoutTheLayersOrTheLogits) {
  AttackedFunction function([](const at::Tensor& x) { return x.flatten(1); });
  const AttackBatch batch{torch::rand({2, 3}, torch::kDouble), {torch::zeros({2}, torch::kLong)}};
  for (const char* path : {"mixture", "experts", "router"})
    EXPECT_NE(testing::error_text([&] {
                gradient_at(function, by(path), batch, batch.pixels);
              }).find("way through MoE layers, and this model has none"),
              std::string::npos);
  AttackedImageModel hash(test::routed_vit({"router.name=hash"})), limited(test::routed_vit({"capacity.factor=1"}));
  const AttackBatch images = test::routed_images(hash, 2);
  EXPECT_NE(testing::error_text([&] {
              gradient_at(hash, by("mixture"), images, images.pixels);
            }).find("needs the logits of each router"),
            std::string::npos);
  Objective drops = by("mixture");
  drops.routing.loss = "drops";
  EXPECT_NE(testing::error_text([&] { gradient_at(limited, drops, images, images.pixels); }).find("drops nothing"),
            std::string::npos);
}

}  // namespace sparsight::gradient_path_test
