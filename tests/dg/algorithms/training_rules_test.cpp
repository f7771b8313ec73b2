// What algorithms do with the loss of ERM: optimisers, alternation, copies and averages of the weights.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/dg/algorithms/dann.h"
#include "sparsight/dg/algorithms/erm_pp.h"
#include "sparsight/dg/algorithms/loss_valley.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"
#include "tests/dg/algorithms/hand_case.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::dg_training_rules_test {
namespace {

using test::DomainCase;
using test::near;

// As GMoE: a cosine router, one expert per token, noise, both losses with 0.005 (0.01 times half their sum).
DomainCase tiny_gmoe(const std::vector<std::string>& optimizer) {
  std::vector<std::string> settings{"model.name=vit",  "model.size=custom", "model.width=16",
                                    "model.depth=2",   "model.heads=2",     "model.patch=4",
                                    "moe.blocks=[-1]", "moe.experts=3",     "router.name=cosine"};
  settings.insert(settings.end(), optimizer.begin(), optimizer.end());
  return test::domain_case(settings, {1, 8, 8, 2});
}

Batch make_images(int64_t domain, uint64_t seed) {
  Batch batch;
  batch.images = test::random_tensor({6, 1, 8, 8}, seed, at::kFloat).abs();
  batch.labels = at::arange(6).remainder(2);
  batch.domains = at::full({6}, domain, at::kLong);
  return batch;
}

NamedTensors clone_weights(const ImageModel& model) {
  NamedTensors copy;
  for (const auto& [name, tensor] : named_weights(model)) copy.emplace_back(name, tensor.detach().clone());
  return copy;
}

at::Tensor find_state(const NamedTensors& tensors, const std::string& wanted) {
  for (const auto& [name, tensor] : tensors)
    if (name == wanted) return tensor;
  return {};
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!at::equal(a[i].second, b[i].second)) return false;
  return a.size() == b.size();
}

WeightSegment segment(double loss, int64_t number) {
  WeightSegment made;
  made.mean = {{"w", at::full({1}, static_cast<double>(number))}};
  made.loss = loss;
  return made;
}

// Segment i has the weight i.
LossValley make_valley(const std::vector<double>& losses) {
  LossValley valley({});
  for (size_t i = 0; i < losses.size(); ++i) valley.add(segment(losses[i], static_cast<int64_t>(i)));
  return valley;
}

double average_value(const LossValley& valley) { return valley.average().at(0).second.item<double>(); }

using Numbers = std::vector<int64_t>;

}  // namespace

// The first step of Adam with weight decay d in the gradient: g' = g + d w, and w moves by lr g' / (|g'| + eps).
TEST(Erm, G23_AStepOfGmoeAddsTheAuxiliaryLossesAndDecaysByTheGradient) {
  constexpr double kRate = .01, kDecay = .1;
  const DomainCase made =
      tiny_gmoe({"optimizer.name=adam", "optimizer.lr=0.01", "optimizer.weight_decay=0.1", "train.no_decay=[]"});
  const std::vector<Batch> batches{make_images(0, 1)};
  const auto algorithm = test::make_algorithm(made, "erm");
  const ModelOutput output = made.model->forward({.images = batches[0].images,
                                                  .mode = ForwardMode::training(),
                                                  .random = {5, 0},
                                                  .info = {.image = at::arange(6)}});
  ASSERT_EQ(output.losses.size(), 2u);
  const at::Tensor risk = at::cross_entropy_loss(output.logits, batches[0].labels);
  at::Tensor total = risk;
  for (const NamedLoss& loss : output.losses) {
    EXPECT_DOUBLE_EQ(loss.weight, .005);
    total = total + .01 * loss.value / 2;
  }
  total.backward();
  std::vector<at::Tensor> expected, certain;  // certain: where the gradient is more than its rounding errors
  const auto parameters = made.model->named_parameters();
  for (const auto& item : parameters) {
    const at::Tensor& w = item.value();
    if (!w.grad().defined()) {
      expected.push_back(w.detach().clone());
      certain.push_back(at::ones_like(w, at::kBool));
      continue;
    }
    const at::Tensor g = w.grad() + kDecay * w.detach();
    expected.push_back(w.detach() - kRate * g / (g.abs() + 1e-8));
    certain.push_back(g.abs() > 1e-6);
  }
  const Json means = test::mean_metrics(test::update(*algorithm, batches));
  EXPECT_NEAR(means.at("loss").get<double>(), total.item<double>(), 1e-6);
  EXPECT_NEAR(means.at("task_loss").get<double>(), risk.item<double>(), 1e-6);
  for (const NamedLoss& loss : output.losses)
    EXPECT_NEAR(means.at("losses").at(loss.name).get<double>(), loss.value.item<double>(), 1e-6);
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor& got = made.model->named_parameters()[i].value();
    const at::Tensor off = (got - expected[i]).abs().gt(1e-5).logical_and(certain[i]);
    EXPECT_FALSE(off.any().item<bool>()) << parameters[i].key();
    EXPECT_GT(certain[i].to(at::kDouble).mean().item<double>(), .6) << parameters[i].key();  // keys' biases: a third
  }
}

TEST(Dann, G27_AlternatesDiscriminatorAndModel) {
  EXPECT_FALSE(discriminator_turn(1, 1));  // n = 1: 1 mod 2 is not below 1
  EXPECT_TRUE(discriminator_turn(2, 1));
  for (const int64_t s : {1, 2, 5}) {
    int64_t turns = 0;
    for (int64_t n = 1; n <= 3 * (1 + s); ++n) turns += discriminator_turn(n, s) ? 1 : 0;
    EXPECT_EQ(turns, 3 * s);
  }
  for (const char* name : {"dann", "cdann"}) {
    const DomainCase made = tiny_gmoe({"optimizer.name=adam"});
    const auto algorithm = test::make_algorithm(made, name, {{"d_steps", 2}, {"grad_penalty", .5}});
    at::Tensor discriminator;
    for (uint64_t step = 0; step < 6; ++step) {
      const NamedTensors before = clone_weights(*made.model);
      test::update(*algorithm, {make_images(0, 1), make_images(1, 2)}, step);
      const bool turn = discriminator_turn(static_cast<int64_t>(step) + 1, 2);
      EXPECT_EQ(same(clone_weights(*made.model), before), turn) << name << " step " << step;
      const at::Tensor now = test::state_tensor(*algorithm, "discriminator/0.weight").clone();
      if (discriminator.defined()) {
        EXPECT_EQ(at::equal(now, discriminator), !turn) << name << " step " << step;
      }
      discriminator = now;
    }
  }
}

// With the same random weights in both networks, x - d would be 0, which has no cosines. Those of the next seed are the
// model's of another run.
TEST(Adrmx, TheDomainModelHasThePretrainedWeightsOrRandomOnesOfItsOwn) {
  for (const char* init_from : {"", "pretrained.safetensors"}) {
    DomainCase made = tiny_gmoe({"optimizer.name=adam"});
    made.context.train.init_from = init_from;
    const auto algorithm = test::make_algorithm(made, "adrmx");
    NamedTensors second;
    for (const auto& [name, tensor] : named_weights(*made.model))
      second.emplace_back(name, test::state_tensor(*algorithm, "adrmx.domain_model/" + name));
    EXPECT_EQ(same(second, named_weights(*made.model)), *init_from != '\0');
    if (*init_from != '\0') continue;
    initialize(*made.model, static_cast<uint64_t>(made.context.run.seed) + 1);
    EXPECT_FALSE(same(second, named_weights(*made.model)));
  }
}

// With d_steps = 2, update n = 1 is one of the discriminator: 1 mod 3 is below 2.
TEST(Adrmx, TheDiscriminatorHasDropout) {
  const auto loss_with = [](double dropout) {
    const DomainCase made = tiny_gmoe({"optimizer.name=adam"});
    const auto algorithm = test::make_algorithm(made, "adrmx", {{"mlp_depth", 3}, {"mlp_dropout", dropout}});
    return test::mean_metrics(test::update(*algorithm, {make_images(0, 1), make_images(1, 2)}))
        .at("discriminator_loss")
        .get<double>();
  };
  EXPECT_EQ(loss_with(0), loss_with(0));
  EXPECT_NE(loss_with(.5), loss_with(0));
}

// Logits = input, 0: p - y = (-.5,.5), squares .5. And numerically, in fp64: the gradient of the sum of cross
// entropies, and the derivatives of the penalty in input and weights.
TEST(Dann, G27_GradientPenaltyEqualsNumericDerivatives) {
  const at::Tensor zero = at::zeros({1, 2}).requires_grad_(true);
  EXPECT_TRUE(near(input_gradient_penalty(zero * 1, at::zeros({1}, at::kLong), zero), .5, 1e-6));

  const at::Tensor input = test::random_tensor({3, 4}, 1), labels = at::tensor({0, 1, 1}, at::kLong);
  const at::Tensor w1 = test::random_tensor({5, 4}, 2), w2 = test::random_tensor({2, 5}, 3);
  const auto compute_logits = [&](const at::Tensor& x) { return at::linear(at::linear(x, w1).tanh(), w2); };
  const auto penalty = [&] { return input_gradient_penalty(compute_logits(input), labels, input); };
  input.set_requires_grad(true);
  const double got = penalty().item<double>();
  double squares = 0;
  {
    const at::NoGradGuard no_grad;
    const auto sum = [&] {
      return at::cross_entropy_loss(compute_logits(input), labels, {}, at::Reduction::Sum).item<double>();
    };
    double* x = input.data_ptr<double>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      const double kept = x[i];
      x[i] = kept + 1e-5;
      const double above = sum();
      x[i] = kept - 1e-5;
      const double below = sum();
      x[i] = kept;
      squares += std::pow((above - below) / 2e-5, 2);
    }
  }
  EXPECT_NEAR(got, squares / 3, 1e-7);
  const auto numeric = [&] {
    const at::AutoGradMode with_grad(true);
    return penalty();
  };
  EXPECT_LT(test::gradient_error(numeric, {input, w1, w2}), 1e-6);
}

// Two images of class 0 and one of class 1, K = 2: weights 1/4, 1/4, 1/2. Logits 0: each cross entropy is ln 2.
TEST(Dann, ClassesCountTheSameInTheConditionalLoss) {
  const at::Tensor labels = at::tensor({0, 1, 0}, at::kLong), domains = at::tensor({0, 0, 1}, at::kLong);
  EXPECT_TRUE(near(class_balanced_loss(at::zeros({3, 2}), domains, labels, 2), std::log(2), 1e-6));
  // Image 1 alone has cross entropy ln(1 + e^-2) = .126928 instead.
  const at::Tensor logits = at::tensor({0., 0., 2., 0., 0., 0.}).view({3, 2});
  EXPECT_TRUE(near(class_balanced_loss(logits, domains, labels, 2), .5 * .693147 + .5 * .126928, 1e-5));
}

TEST(Fish, G28_OneDomainAtFullRateIsAnAdamStepAndRateZeroStays) {
  const std::vector<std::string> adam{"optimizer.name=adam", "optimizer.lr=0.01"};
  const DomainCase erm = tiny_gmoe(adam), full = tiny_gmoe(adam), half = tiny_gmoe(adam), zero = tiny_gmoe(adam);
  const NamedTensors start = clone_weights(*erm.model);
  test::update(*test::make_algorithm(erm, "erm"), {make_images(0, 1)});
  test::update(*test::make_algorithm(full, "fish", {{"meta_lr", 1}}), {make_images(0, 1)});
  test::update(*test::make_algorithm(zero, "fish", {{"meta_lr", 0}}), {make_images(0, 1)});
  test::update(*test::make_algorithm(half, "fish", {{"meta_lr", .5}}), {make_images(0, 1)});
  EXPECT_TRUE(same(clone_weights(*full.model), clone_weights(*erm.model)));
  EXPECT_TRUE(same(clone_weights(*zero.model), start));
  EXPECT_FALSE(same(clone_weights(*full.model), start));
  const NamedTensors ends = clone_weights(*erm.model), middle = clone_weights(*half.model);
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_TRUE(near(middle[i].second, (start[i].second + ends[i].second) / 2, 1e-6)) << start[i].first;
}

// The inner optimiser goes on where it was: after two updates of two domains it has taken four steps.
TEST(Fish, G28_TheInnerOptimiserKeepsItsState) {
  const DomainCase made = tiny_gmoe({"optimizer.name=adam"});
  const auto fish = test::make_algorithm(made, "fish");
  for (uint64_t step = 0; step < 2; ++step) test::update(*fish, {make_images(0, 1), make_images(1, 2)}, step);
  EXPECT_EQ(test::state_tensor(*fish, "optimizer/head.weight/step").item<double>(), 4);
}

// Losses of segments 0, 1, ...: of 4, 5, 6 the first is the least, so that the average starts with 4 and the threshold
// is 1.1 * 1.3 = 1.43; segment 3 is above it. From 10 on the head of the six last is past the start: 5 to 9 are
// averaged, and with 15 all of 10 ... 15 are above the threshold.
TEST(LossValley, G30_StartsAveragesAndEnds) {
  std::vector<double> losses{5, 4, 3, 2, 1, 1.1, 1.2, 1.1, 1.2, 1.3, 2, 2, 2, 2, 2};
  LossValley valley = make_valley({losses.begin(), losses.begin() + 6});
  EXPECT_FALSE(valley.has_started());
  valley.add(segment(losses[6], 6));
  EXPECT_TRUE(valley.has_started());
  EXPECT_NEAR(valley.threshold(), 1.43, 1e-12);
  EXPECT_EQ(valley.averaged(), Numbers{4});
  for (size_t i = 7; i < losses.size(); ++i) valley.add(segment(losses[i], static_cast<int64_t>(i)));
  EXPECT_EQ(valley.averaged(), (Numbers{4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(valley.has_ended());
  valley.add(segment(2, 15));
  EXPECT_TRUE(valley.has_ended());
  valley.add(segment(1, 16));  // too late
  valley = valley.finished();
  EXPECT_EQ(valley.averaged(), (Numbers{4, 5, 6, 7, 8, 9}));
  EXPECT_NEAR(average_value(valley), 6.5, 1e-6);
}

// It starts with 3 once 5 is there, and 0 to 2 are below the threshold too; at the end 4 and 5 follow.
TEST(LossValley, G30_LooksBackAndTakesTheRestAtTheEnd) {
  LossValley valley = make_valley({1.3, 1.2, 1.15, 1, 1.1, 1.2});
  EXPECT_EQ(valley.averaged(), (Numbers{0, 1, 2, 3}));
  valley = valley.finished();
  EXPECT_EQ(valley.averaged(), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_NEAR(average_value(valley), 2.5, 1e-6);
}

// From segment 3 on, no loss of the rest is below the threshold 1.43.
TEST(LossValley, G30_AtTheEndOnlyWhatIsInTheValley) {
  LossValley valley = make_valley({1, 1.1, 1.2, 2, 2, 2});
  valley = valley.finished();
  EXPECT_EQ(valley.averaged(), (Numbers{0, 1, 2}));
  EXPECT_NEAR(average_value(valley), 1, 1e-6);
}

TEST(LossValley, G30_WithoutAStartTheLastSegmentIsTheResult) {
  LossValley valley = make_valley({5, 4, 3, 2, 1});
  EXPECT_TRUE(valley.average().empty());
  valley = valley.finished();
  EXPECT_TRUE(valley.averaged().empty());
  EXPECT_EQ(average_value(valley), 4);
}

// The algorithm: segments between evaluations; the result is the mean of the weights after each of their steps.
TEST(Swad, G30_AveragesTheWeightsOfItsSegments) {
  const DomainCase made = tiny_gmoe({"optimizer.name=adam", "optimizer.lr=0.01"});
  const auto swad = test::make_algorithm(made, "swad", {{"start", 1}, {"end", 1}});
  std::vector<at::Tensor> heads;
  uint64_t step = 0;
  for (const double loss : {1.0, 1.1, 9.0}) {
    for (int i = 0; i < 2; ++i) {
      test::update(*swad, {make_images(0, 1)}, step++);
      heads.push_back(test::find_weight(*made.model, "head.weight").detach().clone());
    }
    EXPECT_EQ(swad->weight_average(), nullptr);
    swad->validated(loss);
  }
  EXPECT_TRUE(swad->has_converged());  // 9 is above 1.3
  EXPECT_TRUE(swad->finish());
  ASSERT_NE(swad->weight_average(), nullptr);
  EXPECT_EQ(swad->weight_average()->name(), "swad");
  for (const auto& [name, tensor] : swad->weight_average()->tensors())
    if (name == "head.weight") {
      EXPECT_TRUE(near(tensor, (heads[0] + heads[1] + heads[2] + heads[3]) / 4, 1e-6));
    }
}

// A rise after 1: the second evaluation in a row that is not lower divides the rate by 10, and with the third division
// training ends.
TEST(ErmPlusPlus, DividesTheRateOnPlateaus) {
  PlateauRate rate;
  for (const double loss : {1.0, 0.9, 0.95}) rate.add(loss);
  EXPECT_EQ(rate.factor(), 1);
  rate.add(0.9);
  EXPECT_NEAR(rate.factor(), .1, 1e-12);
  for (const double loss : {0.8, 0.85, 0.85, 0.9, 0.9}) rate.add(loss);
  EXPECT_NEAR(rate.factor(), .001, 1e-12);
}

TEST(ErmPlusPlus, TrainsTheHeadFirst) {
  const DomainCase made = tiny_gmoe({"optimizer.name=adam", "optimizer.lr=0.01"});
  const auto algorithm = test::make_algorithm(made, "erm_pp", {{"linear_steps", 1}, {"sma_start", 2}});
  const NamedTensors start = clone_weights(*made.model);
  test::update(*algorithm, {make_images(0, 1)}, 0);
  for (const auto& [name, tensor] : start)
    EXPECT_NE(at::equal(test::find_weight(*made.model, name), tensor), name.starts_with("head.")) << name;
  const NamedTensors after = clone_weights(*made.model);
  test::update(*algorithm, {make_images(0, 1)}, 1);
  EXPECT_FALSE(at::equal(test::find_weight(*made.model, "cls_token"), find_state(after, "cls_token")));
  EXPECT_TRUE(at::equal(test::state_tensor(*algorithm, "ema/cls_token"), test::find_weight(*made.model, "cls_token")));
}

TEST(ErmSma, AveragesFromItsStart) {
  const DomainCase made = tiny_gmoe({"optimizer.name=adam", "optimizer.lr=0.01"});
  const auto sma = test::make_algorithm(made, "erm_sma", {{"start", 1}});
  std::vector<at::Tensor> heads;
  for (uint64_t step = 0; step < 3; ++step) {
    test::update(*sma, {make_images(0, 1)}, step);
    heads.push_back(test::find_weight(*made.model, "head.weight").detach().clone());
  }
  EXPECT_TRUE(near(test::state_tensor(*sma, "ema/head.weight"), (heads[1] + heads[2]) / 2, 1e-6));
}

}  // namespace sparsight::dg_training_rules_test
