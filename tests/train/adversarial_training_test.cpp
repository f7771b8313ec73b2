// Adversarial training on a linear model of four pixels, f = w . x with the logits (0, f), so that attacks and updates
// follow by hand: the loss of class 1 is ln(1 + exp(-f)), its gradients are -x s(-f) and -w s(-f), s the logistic
// function.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/adversarial/free_training.h"
#include "sparsight/train/adversarial/pgd_training.h"
#include "sparsight/train/adversarial/trades.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"

#include <nlohmann/json.hpp>

namespace sparsight::adversarial_training_test {
namespace {

// Keeps the images of every pass, apart for passes with and without gradients of the weights.
class LinearPixels : public ImageModel {
 public:
  explicit LinearPixels(const std::vector<float>& weights) : ImageModel({1, 2, 2, 2}) {
    w = register_parameter("w", torch::tensor(weights));
  }
  at::Tensor classify(const at::Tensor& features) override { return two_class_logits(features.unsqueeze(1)); }
  at::Tensor w;  // [4]
  std::vector<at::Tensor> attacked, trained;

 protected:
  ModelOutput run(const ModelInput& input) override {
    (w.requires_grad() ? trained : attacked).push_back(input.images.detach().clone());
    EXPECT_EQ(w.requires_grad(), input.mode.dropout) << "only passes of training need gradients of the weights";
    ModelOutput out;
    out.features = input.images.flatten(1).mv(w);
    return out;
  }
};

struct LinearCase {
  std::shared_ptr<LinearPixels> model;
  AlgorithmContext context;
};

// Plain SGD with rate 1.
LinearCase linear_setup(const std::vector<float>& weights) {
  LinearCase setup;
  setup.model = std::make_shared<LinearPixels>(weights);
  setup.context.model = setup.model;
  setup.context.config = {
      {"optimizer", {{"name", "sgd"}, {"lr", 1.0}, {"momentum", 0.0}, {"nesterov", false}, {"weight_decay", 0.0}}}};
  return setup;
}

std::shared_ptr<Algorithm> make(const std::string& name, const LinearCase& setup,
                                const Json& settings = Json::object()) {
  return algorithms().make(name, settings, "algorithm", setup.context);
}

Batch labelled_batch(const std::vector<float>& pixels, const std::vector<int64_t>& labels) {
  Batch batch;
  const auto count = static_cast<int64_t>(labels.size());
  batch.images = torch::tensor(pixels).view({count, 1, 2, 2});
  batch.labels = torch::tensor(labels, torch::kLong);
  return batch;
}

UpdateResult update(Algorithm& algorithm, const Batch& batch, uint64_t step = 0) {
  Minibatches minibatches(std::vector<Batch>{batch});
  UpdateContext context;
  context.random = {5, step};
  return algorithm.update(minibatches, context);
}

float at(const at::Tensor& values, int64_t i) { return values.view(-1)[i].item<float>(); }

// Many images of class 1, and the same number of class 0.
Batch many_images() {
  Batch batch;
  batch.images = torch::arange(80, torch::kFloat).mul(0.7).sin().abs().view({20, 1, 2, 2});
  batch.labels = torch::arange(20, torch::kLong) % 2;
  return batch;
}

double largest_change(const at::Tensor& images, const at::Tensor& from) {
  return (images - from).to(torch::kDouble).abs().max().item<double>();
}

}  // namespace

// w = (2, -1, 0, 1), x = (.5, .5, .5, .5): ten steps of epsilon / 10 against the sign of w end at x' = (.5 - e, .5 + e,
// .5, .5 - e), e = 8/255. Then w <- w + s(-w . x') x', with w . x' = 1 - 4 e = .874510, s(-.874510) = .294317.
TEST(PgdTraining, A31_AttacksAtTheCurrentWeightsAndUpdatesOnTheAttackedBatch) {
  const LinearCase setup = linear_setup({2, -1, 0, 1});
  const auto algorithm = make("pgd_training", setup);
  const UpdateResult result = update(*algorithm, labelled_batch({.5, .5, .5, .5}, {1}));
  EXPECT_EQ(result.not_finite, "");
  const LinearPixels& model = *setup.model;
  EXPECT_EQ(model.attacked.size(), 10u);
  ASSERT_EQ(model.trained.size(), 1u);
  const double e = 8.0 / 255, moved[] = {.5 - e, .5 + e, .5, .5 - e}, before[] = {2, -1, 0, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(at(model.trained[0], i), moved[i], 1e-6);
    EXPECT_NEAR(at(model.w, i), before[i] + .294317 * moved[i], 1e-6);
  }
  // The second step attacks at the new weights: w_2 is above 0 now.
  update(*algorithm, labelled_batch({.5, .5, .5, .5}, {1}), 1);
  EXPECT_NEAR(at(model.trained[1], 2), .5 - e, 1e-6);
}

// Class 0 has weight 0, so that only the image of class 1 counts, alone: w <- w + s(-w . x) x, with w = (1, 0, 0, 0),
// x = (1, 0, 1, 0) and s(-1) = .268941.
TEST(Erm, TrainsWithClassWeights) {
  LinearCase setup = linear_setup({1, 0, 0, 0});
  setup.context.class_weights = torch::tensor({0.0, 1.0}, torch::kDouble);
  const auto algorithm = make("erm", setup);
  EXPECT_TRUE(algorithm->takes_class_weights());
  update(*algorithm, labelled_batch({1, 0, 1, 0, 0, 1, 0, 0}, {1, 0}));
  const double expected[] = {1.268941, 0, .268941, 0};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(at(setup.model->w, i), expected[i], 1e-6);
}

// The recipe of the paper's fine-tuning: rate .03 after 500 steps of linear warm-up, cosine to 1e-5 at step 10,000.
TEST(PgdTraining, A31_TheScheduleHitsItsNumbers) {
  const Schedule schedule = schedules().make("cosine", Json{{"warmup_epochs", 5}, {"final_factor", 1e-5 / .03}},
                                             "schedule", TrainingLength{100, 10000});
  EXPECT_NEAR(.03 * schedule(249), .015, 1e-12);  // the 250th step
  EXPECT_NEAR(.03 * schedule(500), .03, 1e-12);
  EXPECT_NEAR(.03 * schedule(10000), 1e-5, 1e-12);
  EXPECT_GT(.03 * schedule(9999), 1e-5);
}

// The loss times 1000: the gradient is 1000 s(-w . x') x', of norm about 285, and is clipped to 10.
TEST(PgdTraining, A31_ClipsTheGradientAtGlobalNorm10) {
  LinearCase setup = linear_setup({2, -1, 0, 1});
  setup.context.train.task_weight = 1000;
  setup.context.train.clip_norm = 10;
  const at::Tensor before = setup.model->w.detach().clone();
  update(*make("pgd_training", setup), labelled_batch({.5, .5, .5, .5}, {1}));
  EXPECT_NEAR((setup.model->w.detach() - before).norm().item<double>(), 10, 1e-4);
}

TEST(PgdTraining, KeepsEpsilonAndPixelRange) {
  const Batch batch = many_images();
  const std::pair<const char*, Json> settings[] = {
      {"pgd_training", {{"epsilon", "4/255"}}},
      {"pgd_training", {{"preset", "strict"}, {"start", "ball"}, {"epsilon", .2}, {"steps", 3}}},
      {"pgd_training", {{"epsilon", "8/255"}, {"range", "-1..1"}}},
      {"fast", {{"epsilon", .2}}},
      {"free", {{"epsilon", .2}}},
      {"trades", {{"epsilon", .2}}}};
  const double radii[] = {4.0 / 255, .2, 4.0 / 255, .2, .2, .2};
  for (size_t i = 0; i < std::size(radii); ++i) {
    SCOPED_TRACE(settings[i].first);
    const LinearCase setup = linear_setup({2, -1, .5, 1});
    const auto algorithm = make(settings[i].first, setup, settings[i].second);
    for (uint64_t step = 0; step < 3; ++step) update(*algorithm, batch, step);
    double largest = 0;
    for (const at::Tensor& images : setup.model->trained) {
      EXPECT_LE(largest_change(images, batch.images), radii[i] * (1 + 1e-6));
      largest = std::max(largest, largest_change(images, batch.images));
      if (i == 0 || i == 2) continue;  // the paper's preset does not clip
      EXPECT_GE(images.min().item<float>(), 0);
      EXPECT_LE(images.max().item<float>(), 1);
    }
    EXPECT_GT(largest, .9 * radii[i]);
  }
}

TEST(PgdTraining, L2StepsAreAlongTheGradient) {
  const LinearCase setup = linear_setup({3, 0, 4, 0});
  update(*make("pgd_training", setup, {{"norm", "l2"}, {"epsilon", .1}}), labelled_batch({.5, .5, .5, .5}, {1}));
  const double moved[] = {.5 - .06, .5, .5 - .08, .5};  // .1 * (3, 4) / 5
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(at(setup.model->trained[0], i), moved[i], 1e-6);
}

TEST(PgdTraining, StartsAtRandomPointsThatFollowFromTheStep) {
  const auto first_images = [](uint64_t step) {
    const LinearCase setup = linear_setup({2, -1, .5, 1});
    update(*make("fast", setup, {{"relative_step", 1e-6}}), many_images(), step);
    return setup.model->trained[0];
  };
  EXPECT_TRUE(at::equal(first_images(3), first_images(3)));
  EXPECT_FALSE(at::equal(first_images(3), first_images(4)));
}

TEST(AdversarialTraining, RefusesAnEpsilonThatAllowsEverything) {
  const LinearCase setup = linear_setup({2, -1, 0, 1});
  setup.model->set_definition({{}, {1, 2, 2, 2}, {}});
  for (const char* name : {"pgd_training", "trades", "free", "fast"}) {
    const auto message = [&](const Json& settings) {
      return testing::error_text<UsageError>([&] { make(name, setup, settings); });
    };
    EXPECT_NE(message({{"epsilon", 8}}).find("epsilon 8 of pixels in 0..1 lets every pixel have any value"),
              std::string::npos)
        << name;
    EXPECT_EQ(message({{"epsilon", 8}, {"range", "0..255"}}), "") << name;
    // 4 values of 0..1: the diagonal is 2.
    EXPECT_NE(message({{"epsilon", 2}, {"norm", "l2"}}).find("must be below 2"), std::string::npos) << name;
    EXPECT_EQ(message({{"epsilon", 1.9}, {"norm", "l2"}}), "") << name;
  }
}

TEST(PgdTraining, RefusesWhatThePaperDoesNotHave) {
  const LinearCase setup = linear_setup({1, 1, 1, 1});
  EXPECT_NE(testing::error_text<UsageError>([&] {
              make("pgd_training", setup, {{"start", "ball"}});
            }).find("use preset = \"strict\""),
            std::string::npos);
  EXPECT_THROW(make("pgd_training", setup, {{"epsilon", "x"}}), UsageError);
}

// A gradient that is not finite moves nothing; the pass of the training then finds the loss not finite.
TEST(PgdTraining, LeavesTheWeightsWhereTheAttackIsNotFinite) {
  for (const char* norm : {"linf", "l2"}) {
    const LinearCase setup = linear_setup({2, -1, 0, std::numeric_limits<float>::quiet_NaN()});
    const UpdateResult result =
        update(*make("pgd_training", setup, {{"norm", norm}}), labelled_batch({.5, .5, .5, .5}, {1}));
    EXPECT_EQ(result.not_finite, "loss");
    EXPECT_EQ(at(setup.model->w, 0), 2);
  }
}

// w = (2, 0, 0, 0), x = (.5, 0, 0, 0), epsilon .1, rate 1, three replays: x moves to .4 after the first.
//   w = 2 + .5 s(-1) = 2.1344707, then + .4 s(-.8537883) = 2.2539262, then + .4 s(-.9015705) = 2.3694174.
// The next batch starts with the perturbation of the one before, and is trained at .4 at once: + .4 s(-.9477669).
TEST(FreeTraining, UpdatesTheWeightsInEveryReplayAndKeepsThePerturbation) {
  const LinearCase setup = linear_setup({2, 0, 0, 0});
  const auto algorithm = make("free", setup, {{"epsilon", .1}, {"replays", 3}});
  const Batch batch = labelled_batch({.5, 0, 0, 0}, {1});
  update(*algorithm, batch);
  EXPECT_NEAR(at(setup.model->w, 0), 2.3694174, 1e-6);
  EXPECT_EQ(setup.model->trained.size(), 3u);
  EXPECT_TRUE(setup.model->attacked.empty());
  const AlgorithmState state = algorithm->state();
  const NamedTensors saved = tensors_under("perturbation/", state.tensors);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_NEAR(at(saved[0].second, 0), -.1, 1e-6);
  update(*algorithm, batch, 1);
  EXPECT_NEAR(at(setup.model->trained[3], 0), .4, 1e-6);

  // A fresh one goes on with the saved perturbation.
  const LinearCase other = linear_setup({2.3694174F, 0, 0, 0});
  const auto resumed = make("free", other, {{"epsilon", .1}, {"replays", 3}});
  resumed->load_state(state);
  update(*resumed, batch, 1);
  EXPECT_NEAR(at(other.model->w, 0), at(setup.model->w, 0), 1e-6);
}

// p = (1/4, 3/4) without and (1/2, 1/2) under attack: 1/4 ln(1/2) + 3/4 ln(3/2) = .130812.
TEST(Trades, TheDivergenceByHand) {
  const at::Tensor clean = torch::tensor({{0.0, std::log(3.0)}, {2.0, 2.0}}),
                   attacked = torch::tensor({{1.0, 1.0}, {7.0, 7.0}});
  EXPECT_NEAR(divergence_under_attack(clean, attacked).item<double>(), .130812 / 2, 1e-6);
  EXPECT_NEAR(divergence_under_attack(clean, clean).item<double>(), 0, 1e-12);
}

// The loss of one image of class 1 for any weights, in fp64, written out.
double trades_loss(const at::Tensor& w, const at::Tensor& x, const at::Tensor& moved, double beta) {
  const auto f = [&](const at::Tensor& pixels) { return pixels.view(-1).dot(w).item<double>(); };
  const double p = 1 / (1 + std::exp(-f(x))), q = 1 / (1 + std::exp(-f(moved)));
  return -std::log(p) + beta * (p * std::log(p / q) + (1 - p) * std::log((1 - p) / (1 - q)));
}

TEST(Trades, UpdatesAlongTheGradientOfItsLoss) {
  const LinearCase setup = linear_setup({2, -1, 0, 1});
  const at::Tensor before = setup.model->w.detach().clone().to(torch::kDouble);
  const Batch batch = labelled_batch({.5, .4, .3, .2}, {1});
  const UpdateResult result = update(*make("trades", setup, {{"beta", 5}, {"epsilon", .1}}), batch);
  ASSERT_EQ(setup.model->trained.size(), 2u);
  EXPECT_EQ(setup.model->attacked.size(), 11u);  // one for the probabilities without attack
  const at::Tensor x = batch.images.to(torch::kDouble), moved = setup.model->trained[1].to(torch::kDouble);
  EXPECT_TRUE(at::equal(setup.model->trained[0], batch.images));
  EXPECT_NEAR(std::abs(at(setup.model->trained[1], 0) - .5), .1, 1e-6);  // at the surface, on either side
  for (int i = 0; i < 4; ++i) {
    const double h = 1e-5;
    at::Tensor up = before.clone(), down = before.clone();
    up[i] += h;
    down[i] -= h;
    const double gradient = (trades_loss(up, x, moved, 5) - trades_loss(down, x, moved, 5)) / (2 * h);
    EXPECT_NEAR(at(setup.model->w, i) - before[i].item<double>(), -gradient, 1e-5);
  }
  Json line;
  result.means.write_to(line);
  EXPECT_NEAR(line["loss"].get<double>(), trades_loss(before, x, moved, 5), 1e-5);
  EXPECT_EQ(line["clean_accuracy"], 1);
}

}  // namespace sparsight::adversarial_training_test
