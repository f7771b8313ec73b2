// The library's models under attack: a small vision transformer with an MoE layer.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/apgd/apgd.h"
#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/fab/fab.h"
#include "sparsight/attacks/fgsm.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::attacked_image_model_test {
namespace {

std::shared_ptr<ImageModel> small_vit(const std::vector<std::string>& settings = {},
                                      at::ScalarType type = torch::kDouble) {
  Config config;
  for (const char* setting : {"model.name=vit", "model.width=16", "model.depth=2", "model.heads=2", "model.patch=4",
                              "moe.blocks=[1]", "moe.experts=4", "router.k=2"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  auto model = make_model(resolve(config, config_sections()), {3, 8, 8, 5}, {{0.5, 0.4, 0.3}, {0.2, 0.3, 0.25}});
  initialize(*model, 3);
  model->to(type);
  const torch::NoGradGuard no_grad;  // the head starts near 0
  for (const auto& p : model->named_parameters())
    if (p.key() == "head.weight") p.value().copy_(test::random_tensor(p.value().sizes(), 5, type));
  return model;
}

AttackBatch some_images(int64_t count, at::ScalarType type = torch::kDouble) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 3, 8, 8}, 8)).clamp(0.05, 0.95).to(type);
  return {x, {torch::arange(count, torch::kLong) % 5}, torch::arange(count, torch::kLong)};
}

// The same with the classes that the model gives them.
AttackBatch correct_images(AttackedModel& model, int64_t count, at::ScalarType type = torch::kDouble) {
  const torch::NoGradGuard no_grad;
  AttackBatch batch = some_images(count, type);
  batch.labels.label = model.forward(batch.pixels, {batch.image, 0}).logits.argmax(1);
  return batch;
}

ForwardMode with_losses(bool noise = false) {
  ForwardMode mode = ForwardMode::evaluation();
  mode.losses = true;
  mode.noise = noise;
  return mode;
}

// The largest relative difference of the attack's gradient from central differences, at pixels spread over the images.
// Differences that span a change of the routing are left out; their number is returned in `crossed`.
double gradient_error(AttackedModel& model, const Objective& objective, const AttackBatch& batch, int64_t& crossed) {
  const at::Tensor gradient = evaluate_objective(model, objective, batch, batch.pixels, 0).gradient;
  const double h = 1e-6, scale = gradient.abs().max().item<double>();
  const auto total = [&](const at::Tensor& x) {
    return evaluate_loss(model, objective, batch, x, 0).loss.sum().item<double>();
  };
  const auto experts = [&](const at::Tensor& x) {
    const torch::NoGradGuard no_grad;
    return model.forward(x, {batch.image, 0}).routings.at(0).expert;
  };
  double worst = 0;
  for (int64_t i = 0; i < batch.pixels.numel(); i += 29) {
    at::Tensor above = batch.pixels.clone(), below = batch.pixels.clone();
    above.view(-1)[i] += h;
    below.view(-1)[i] -= h;
    if (!torch::equal(experts(above), experts(below))) {
      ++crossed;
      continue;
    }
    const double numeric = (total(above) - total(below)) / (2 * h);
    worst = std::max(worst, std::abs(gradient.view(-1)[i].item<double>() - numeric) / scale);
  }
  return worst;
}

}  // namespace

TEST(AttackedImageModel, A29_InputGradientsAgreeWithCentralDifferences) {
  for (const AttackLoss loss :
       {attack_loss::cross_entropy, attack_loss::sigmoid_cross_entropy, attack_loss::dlr, attack_loss::margin}) {
    AttackedImageModel model(small_vit());
    int64_t crossed = 0;
    EXPECT_LT(gradient_error(model, {.loss = loss}, some_images(4), crossed), 1e-5);
    EXPECT_LT(crossed, 3);
  }
}

TEST(AttackedImageModel, A16_RouterLossesAddToTheGradient) {
  const std::vector<std::string> balanced = {"losses.vmoe_importance=0.7"};
  AttackedImageModel model(small_vit(balanced), {.mode = with_losses()});
  const AttackBatch batch = some_images(4);
  Objective both{.loss = attack_loss::cross_entropy};
  both.router.router_losses = {"vmoe_importance"};
  both.router.router_weight = 100;
  Objective router = both;
  router.router.task_weight = 0;
  int64_t crossed = 0;
  EXPECT_LT(gradient_error(model, both, batch, crossed), 1e-5);
  EXPECT_LT(gradient_error(model, router, batch, crossed), 1e-5);
  const auto gradient = [&](const Objective& objective) {
    return evaluate_objective(model, objective, batch, batch.pixels, 0).gradient;
  };
  const at::Tensor ce = gradient({.loss = attack_loss::cross_entropy}), aux = gradient(router);
  EXPECT_GT(aux.abs().max().item<double>(), 1e-3 * ce.abs().max().item<double>());
  EXPECT_TRUE(test::near(gradient(both), ce + aux, 1e-10));
  // One number for the batch, added to every image.
  const at::Tensor losses = evaluate_loss(model, router, batch, batch.pixels, 0).loss;
  EXPECT_TRUE(test::near(losses, torch::full({4}, losses[0].item<double>(), torch::kDouble), 0));
  const torch::NoGradGuard no_grad;
  EXPECT_NEAR(losses[0].item<double>(),
              100 * 0.7 * model.forward(batch.pixels, {batch.image, 0}).losses.at(0).value.item<double>(), 1e-6);
}

TEST(AttackedImageModel, A16_NamesTheRouterLossesThatAPassHas) {
  Objective objective;
  objective.router.router_losses = {"load"};
  const AttackBatch batch = some_images(2);
  AttackedImageModel with(small_vit({"losses.vmoe_importance=0.7"}), {.mode = with_losses()}), without(small_vit());
  const auto message = [&](AttackedImageModel& model) {
    return testing::error_text([&] { evaluate_loss(model, objective, batch, batch.pixels, 0); });
  };
  EXPECT_NE(message(with).find("\"load\", but this pass computes vmoe_importance"), std::string::npos) << message(with);
  EXPECT_NE(message(without).find("computes none"), std::string::npos);
}

TEST(AttackedImageModel, A30_WeightsStayAsTheyAreAndGetNoGradients) {
  auto vit = small_vit({}, torch::kFloat);
  vit->named_parameters()["pos_embed"].set_requires_grad(false);
  std::vector<at::Tensor> before;
  std::vector<bool> trained;
  for (const at::Tensor& p : vit->parameters())
    before.push_back(p.detach().clone()), trained.push_back(p.requires_grad());
  AttackedImageModel model(vit);
  ApgdOptions options;
  options.steps = 5;
  const AttackResult result = Apgd(options, {{Norm::linf, .1, {}}}).run(model, correct_images(model, 6, torch::kFloat));
  EXPECT_GT(result.cost.gradients, 0);
  const std::vector<at::Tensor> after = vit->parameters();
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_TRUE(torch::equal(after[i], before[i]));
    EXPECT_FALSE(after[i].grad().defined());
    EXPECT_EQ(after[i].requires_grad(), trained[i]);
  }
}

TEST(AttackedImageModel, A30_RestoresWeightsAfterAnError) {
  auto vit = small_vit();
  AttackedImageModel model(vit);
  EXPECT_THROW(model.forward(torch::zeros({1, 1, 8, 8}, torch::kDouble), {}), Error);
  for (const at::Tensor& p : vit->parameters()) EXPECT_TRUE(p.requires_grad());
}

TEST(AttackedImageModel, A28_ExpectationOverNoiseIsTheMeanOfSinglePasses) {
  const AttackBatch batch = some_images(6);
  AttackedImageModel model(small_vit({"router.noise=2"}), {.mode = with_losses(true), .seed = 9});
  Objective one{.loss = attack_loss::cross_entropy}, many = one;
  many.passes = 5;
  const AttackEvaluation mean = evaluate_objective(model, many, batch, batch.pixels, 3);
  at::Tensor loss = torch::zeros({6}, torch::kDouble), gradient = torch::zeros_like(batch.pixels),
             logits = torch::zeros({6, 5}, torch::kDouble);
  at::Tensor votes = torch::zeros({6}, torch::kLong);
  std::vector<at::Tensor> singles;
  for (uint64_t pass = 0; pass < 5; ++pass) {
    const AttackEvaluation single = evaluate_objective(model, one, batch, batch.pixels, 15 + pass);
    loss += single.loss / 5;
    gradient += single.gradient / 5;
    logits += single.logits / 5;
    votes += single.correct.to(torch::kLong);
    singles.push_back(single.gradient);
  }
  EXPECT_FALSE(torch::equal(singles[0], singles[1]));
  EXPECT_TRUE(test::near(mean.loss, loss, 1e-12));
  EXPECT_TRUE(test::near(mean.gradient, gradient, 1e-12));
  EXPECT_TRUE(test::near(mean.logits, logits, 1e-12));
  EXPECT_TRUE(torch::equal(mean.correct, votes >= 3));
  EXPECT_TRUE(model.randomised());
}

// Router noise follows from the images' numbers, so that an image is attacked alike alone and among others.
TEST(AttackedImageModel, A25_AttacksAreIndependentOfTheBatch) {
  for (const bool noise : {false, true}) {
    AttackedImageModel model(small_vit({"router.noise=2"}), {.mode = with_losses(noise), .seed = 9});
    const AttackBatch batch = correct_images(model, 6);
    ApgdOptions options;
    options.steps = 8;
    options.restarts = 2;
    options.objective.passes = noise ? 3 : 1;
    const Apgd attack(options, {{Norm::linf, .05, {}}, 4});
    const AttackResult whole = attack.run(model, batch);
    const at::Tensor some = torch::tensor({4, 1, 2}, torch::kLong);
    const AttackResult part = attack.run(model, batch.select(some));
    EXPECT_TRUE(test::near(part.pixels, whole.pixels.index_select(0, some), 1e-9));
    EXPECT_TRUE(torch::equal(part.correct, whole.correct.index_select(0, some)));
    EXPECT_FALSE(model.coupled());
  }
}

TEST(AttackedImageModel, ImagesThatShareCapacityAreAttackedTogether) {
  AttackedImageModel model(small_vit({"capacity.eval_factor=1"}));
  const AttackBatch batch = correct_images(model, 6);
  std::vector<int64_t> attacked;
  AttackContext context{{Norm::linf, .02, {}}, 4};
  context.observe = [&](const AttackStep& step) { attacked.push_back(step.image.size(0)); };
  ApgdOptions options;
  options.steps = 3;
  options.restarts = 2;
  Apgd(options, context).run(model, batch);
  EXPECT_TRUE(model.coupled());
  EXPECT_GE(attacked.size(), 4u);
  for (const int64_t count : attacked) EXPECT_EQ(count, 6);
}

TEST(AttackedImageModel, A20_MapsTheRangeOfPixels) {
  const AttackBatch batch = some_images(5);
  const ThreatModel threat{Norm::linf, .05, {}};
  AttackedImageModel model(small_vit()), shifted(small_vit(), {.range = {-1, 1}});
  PgdOptions options;
  options.steps = 5;
  const at::Tensor found = Pgd(options, {threat}).run(model, batch).pixels;
  const AttackBatch doubled{2 * batch.pixels - 1, batch.labels};
  const at::Tensor other = Pgd(options, {in_range(threat, {-1, 1})}).run(shifted, doubled).pixels;
  EXPECT_TRUE(test::near((other + 1) / 2, found, 1e-6));
  EXPECT_NE(testing::error_text([&] { Pgd(options, {threat}).run(shifted, batch); }).find("takes pixels in -1..1"),
            std::string::npos);
}

TEST(AttackedImageModel, RefusesTrainingModesAndWrongImages) {
  const auto message = [](const ForwardMode& mode) {
    return testing::error_text<UsageError>([&] { AttackedImageModel(small_vit(), {.mode = mode}); });
  };
  EXPECT_NE(message(ForwardMode::training()).find("batch_statistics"), std::string::npos);
  EXPECT_NE(message({.dropout = true}).find("dropout"), std::string::npos);
  EXPECT_NE(message({.drop_path = true}).find("drop_path"), std::string::npos);
  EXPECT_EQ(message({.noise = true, .capacity = true, .choices = true, .losses = true}), "");
  AttackedImageModel model(small_vit());
  AttackBatch batch = some_images(3);
  batch.pixels = batch.pixels * 255;
  EXPECT_NE(testing::error_text([&] { Fgsm({}, {}).run(model, batch); }).find("starts from pixels in 0..1"),
            std::string::npos);
  batch = some_images(3);
  batch.labels.label = torch::zeros({2}, torch::kLong);
  EXPECT_NE(testing::error_text([&] { Fgsm({}, {}).run(model, batch); }).find("one label per image"),
            std::string::npos);
}

// A model without routers computes some of the images on each thread; with routers all images are one pass.
TEST(AttackedImageModel, GradientsDoNotDependOnTheThreadsThatShareTheImages) {
  for (const char* blocks : {"moe.blocks=[]", "moe.blocks=[1]"}) {
    AttackedImageModel model(small_vit({blocks}));
    const AttackBatch batch = some_images(37);
    const auto with_threads = [&](int threads) {
      const test::ThreadCount count(threads);
      return evaluate_objective(model, {}, batch, batch.pixels, 0);
    };
    const AttackEvaluation one = with_threads(1), two = with_threads(2), again = with_threads(2);
    EXPECT_TRUE(test::near(two.gradient, one.gradient, 1e-12)) << blocks;
    EXPECT_TRUE(test::near(two.logits, one.logits, 1e-12)) << blocks;
    EXPECT_TRUE(torch::equal(two.gradient, again.gradient)) << blocks;
    EXPECT_GT(one.gradient.abs().max().item<double>(), 1e-6);
    EXPECT_EQ(model.cost().gradients, 3 * 37);
  }
}

// FAB goes back once for each class over one graph.
TEST(AttackedImageModel, FabDoesNotDependOnTheThreadsThatShareTheImages) {
  AttackedImageModel model(small_vit({"moe.blocks=[]"}));
  const AttackBatch batch = correct_images(model, 16);
  const auto with_threads = [&](int threads) {
    const test::ThreadCount count(threads);
    return Fab(FabOptions{.steps = 3}, {.threat = {.epsilon = 0.1}, .seed = 2}).pixels(model, batch);
  };
  EXPECT_TRUE(test::near(with_threads(2), with_threads(1), 1e-9));
}

// Copies of weights that a first pass packed are not used for weights that changed. 600 rows, which are packed.
TEST(AttackedImageModel, FollowsItsWeights) {
  const auto model = small_vit({"moe.blocks=[]"}, torch::kFloat);
  const AttackBatch batch = some_images(150, torch::kFloat);
  const auto gradient = [&](AttackedModel& attacked) {
    const at::Tensor x = batch.pixels.detach().requires_grad_(true);
    attacked.forward(x, {batch.image, 0}).logits.logsumexp(1).sum().backward();
    return x.grad();
  };
  const test::ThreadCount one(1);
  AttackedImageModel attacked(model);
  const at::Tensor first = gradient(attacked);
  EXPECT_TRUE(torch::equal(gradient(attacked), first));
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& weight : model->parameters()) weight.mul_(1.5);
  }
  AttackedImageModel fresh(model);
  const at::Tensor changed = gradient(attacked);
  EXPECT_TRUE(torch::equal(changed, gradient(fresh)));
  EXPECT_FALSE(torch::equal(changed, first));
}

}  // namespace sparsight::attacked_image_model_test
