// Targeted attacks: against a linear model whose smallest targeted perturbations are known, losses, targets, refusals.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/fab/fab_run.h"
#include "sparsight/attacks/register_attacks.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::targeted_attack_test {
namespace {

// z = (0.3, 0.1 + 2 d5, 4 d10), d = x - 0.5, of 4 x 4 pixels. At the grey image (d = 0) the logits are 0.3, 0.1 and 0:
// class 0. Class 2 is the closest wrong one: 4 d10 = 0.3, so d10 = 0.075. Class 1 needs 0.1 + 2 d5 = 0.3 while 4 d10
// stays below: d5 = 0.1. One pixel is moved, so both norms of these perturbations are 0.075 and 0.1.
at::Tensor three_logits(const at::Tensor& x) {
  const at::Tensor d = x.flatten(1) - 0.5, five = d.select(1, 5), ten = d.select(1, 10);
  return torch::stack({torch::full_like(five, 0.3), 0.1 + 2 * five, 4 * ten}, 1);
}

constexpr double kToClassOne = 0.1, kToClassTwo = 0.075;

AttackBatch grey_image() { return {torch::full({1, 1, 4, 4}, 0.5, torch::kDouble), {torch::zeros({1}, torch::kLong)}}; }

bool is_targetable(const std::string& name) {
  return attacks().make(name, Json::object(), name, {})->target() != nullptr;
}

std::vector<std::string> targetable_attacks() {
  std::vector<std::string> names;
  for (const std::string& name : attacks().names())
    if (is_targetable(name)) names.push_back(name);
  return names;
}

// Short. The margin is linear here, so that attacks on it are exact in both norms.
Json settings_of(const std::string& name, const std::string& target, const std::string& loss = "margin") {
  Json settings{{"target", target}};
  attacks().get(name).describe([&](const OptionSet& set) {
    if (set.find("steps")) settings["steps"] = 20;
    if (set.find("queries")) settings["queries"] = 400;
    if (set.find("loss")) settings["loss"] = loss;
  });
  return settings;
}

AttackResult run_towards(const std::string& name, const std::string& target, const ThreatModel& threat,
                         const std::string& loss = "margin") {
  AttackedFunction model(three_logits);
  const Json settings = settings_of(name, target, loss);
  return attacks().make(name, settings, name, AttackContext{threat, 3})->run(model, grey_image());
}

// Sums of products rather than a matrix product, whose last bits depend on the number of images on some processors.
at::Tensor five_logits(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 50}, 3), second = test::random_tensor({5, 12}, 4);
  const at::Tensor hidden = ((x.flatten(1) - 0.5).unsqueeze(1) * first).sum(2).sin();
  return (hidden.unsqueeze(1) * second).sum(2);
}

AttackBatch five_class_images(int64_t count) {
  const at::Tensor x = (0.5 + 0.3 * test::random_tensor({count, 2, 5, 5}, 8)).clamp(0, 1);
  return {x, {five_logits(x).argmax(1)}, torch::arange(count, torch::kLong) + 7};
}

AttackLabels towards(const std::vector<int64_t>& label, const std::vector<int64_t>& target) {
  return {torch::tensor(label, torch::kLong), torch::tensor(target, torch::kLong), true};
}

}  // namespace

class TargetedAttack : public ::testing::TestWithParam<std::string> {};

// Square's l2 moves need larger images.
TEST_P(TargetedAttack, SucceedsFromTheSmallestPerturbationOn) {
  for (const Norm norm : {Norm::linf, Norm::l2}) {
    if (GetParam() == "square" && norm == Norm::l2) continue;
    for (const auto& [target, smallest] : {std::pair{"1", kToClassOne}, {"2", kToClassTwo}}) {
      SCOPED_TRACE(cat(target, norm == Norm::l2 ? " l2" : " linf"));
      const AttackResult below = run_towards(GetParam(), target, {norm, 0.98 * smallest, {}}),
                         above = run_towards(GetParam(), target, {norm, 1.07 * smallest, {}});
      EXPECT_TRUE(below.withstood.item<bool>());
      EXPECT_FALSE(above.withstood.item<bool>());
      EXPECT_EQ(three_logits(above.pixels).argmax(1).item<int64_t>(), std::stoll(target));
      EXPECT_EQ(above.target.item<int64_t>(), std::stoll(target));
      check_perturbation(above.pixels, grey_image().pixels, {norm, 1.07 * smallest, {}}, true);
    }
  }
}

// Between the two distances an untargeted attack reaches class 2: another wrong class is no success of a targeted one.
// (The gradient of the margin leads to class 1, the second most likely; that of the cross entropy to all.)
TEST_P(TargetedAttack, AnotherWrongClassIsNoSuccess) {
  const ThreatModel threat{Norm::linf, 0.09, {}};
  const AttackResult free = run_towards(GetParam(), "none", threat, "cross_entropy"),
                     towards = run_towards(GetParam(), "1", threat, "cross_entropy");
  EXPECT_FALSE(free.correct.item<bool>());
  EXPECT_FALSE(free.withstood.item<bool>());
  EXPECT_FALSE(free.target.defined());
  EXPECT_TRUE(towards.withstood.item<bool>());
}

TEST_P(TargetedAttack, TreatsAnImageAloneAsInABatch) {
  const AttackBatch batch = five_class_images(9);
  AttackedFunction model(five_logits);
  for (const char* target : {"3", "least_likely", "random"}) {
    Json settings = settings_of(GetParam(), target);
    if (settings.contains("queries")) settings["queries"] = 30;
    const auto attack = attacks().make(GetParam(), settings, "attack", AttackContext{{Norm::linf, .02, {}}, 1});
    const AttackResult together = attack->run(model, batch);
    for (int64_t i = 0; i < 9; ++i) {
      const AttackResult alone = attack->run(model, batch.select(torch::tensor({i}, torch::kLong)));
      EXPECT_EQ(alone.target.item<int64_t>(), together.target[i].item<int64_t>()) << target << i;
      EXPECT_TRUE(test::near(alone.pixels, together.pixels.narrow(0, i, 1), 1e-9)) << target << i;
    }
  }
}

TEST_P(TargetedAttack, MovesImagesToAnyClass) {
  const AttackBatch batch = five_class_images(12);
  AttackedFunction model(five_logits);
  int64_t reached = 0;
  for (const char* target : {"0", "1", "2", "3", "4"}) {
    Json settings = settings_of(GetParam(), target);
    const auto attack = attacks().make(GetParam(), settings, "attack", AttackContext{{Norm::linf, .1, {}}, 1});
    const AttackResult result = attack->run(model, batch);
    const at::Tensor at_target = five_logits(result.pixels).argmax(1).eq(std::stoll(target));
    EXPECT_TRUE(torch::equal(result.withstood, ~at_target));
    reached += at_target.sum().item<int64_t>();
  }
  EXPECT_GT(reached, 25);  // of 60, of which 12 are there as they are
}

INSTANTIATE_TEST_SUITE_P(Registered, TargetedAttack, ::testing::ValuesIn(targetable_attacks()));

TEST(TargetedAttacks, OthersRefuse) {
  EXPECT_EQ(targetable_attacks(), (std::vector<std::string>{"fgsm", "pgd", "apgd", "fab", "square"}));
  AttackBatch batch = grey_image();
  batch.labels = towards({0}, {1});
  AttackedFunction model(three_logits);
  for (const char* name : {"apgd_t", "fab_t", "cascade"})
    EXPECT_NE(testing::error_text([&] {
                attacks().make(name, Json::object(), name, {})->run(model, batch);
              }).find("this attack cannot be targeted"),
              std::string::npos)
        << name;
}

// FAB looks for the closest point of the target, beyond which its steps go by at most 1.05 and 1.05 again.
TEST(TargetedAttacks, FabFindsTheClosestPointOfTheTarget) {
  AttackedFunction model(three_logits);
  AttackBatch batch = grey_image();
  batch.image = torch::zeros({1}, torch::kLong);
  for (const Norm norm : {Norm::linf, Norm::l2})
    for (const int64_t target : {1, 2}) {
      batch.labels = towards({0}, {target});
      const FabRun run = run_fab(model, batch, {{norm, 1, {}}}, {.iterations = 20}, batch.pixels, 0);
      const double exact = target == 1 ? kToClassOne : kToClassTwo;
      EXPECT_GE(run.distance.item<double>(), exact - 1e-9);
      EXPECT_LE(run.distance.item<double>(), exact * 1.06);
    }
}

// Logits 3, 1, 2 and 0 of label 0. To 1: -log softmax = log(e^3 + e + e^2 + 1) - 1 = 3.440190 - 1; the margin 1 - 3;
// targeted dlr (1 - 3) / (3 - (1 + 0) / 2). To 0, the largest: margin 3 - 2.
TEST(TargetedLosses, AreAboutTheTarget) {
  const at::Tensor z = torch::tensor({{3.0, 1.0, 2.0, 0.0}}, torch::kDouble);
  const AttackLabels to_one = towards({0}, {1});
  EXPECT_NEAR(attack_loss::cross_entropy(z, to_one).item<double>(), -2.440190, 1e-6);
  EXPECT_NEAR(attack_loss::automatic(z, to_one).item<double>(), -2.440190, 1e-6);
  EXPECT_NEAR(attack_loss::margin(z, to_one).item<double>(), -2, 1e-12);
  EXPECT_NEAR(attack_loss::dlr(z, to_one).item<double>(), -0.8, 1e-9);
  EXPECT_NEAR(attack_loss::margin(z, towards({2}, {0})).item<double>(), 1, 1e-12);
  // softplus(3) + softplus(1) - 1 + softplus(2) + softplus(0) = 3.048587 + 0.313262 + 2.126928 + 0.693147
  EXPECT_NEAR(attack_loss::sigmoid_cross_entropy(z, to_one).item<double>(), -6.181924, 1e-6);
  EXPECT_TRUE(withstands_attack(z, to_one).item<bool>());
  EXPECT_FALSE(withstands_attack(z, towards({1}, {0})).item<bool>());
  EXPECT_FALSE(withstands_attack(z, {torch::tensor({1}, torch::kLong)}).item<bool>());  // untargeted: it is wrong
}

TEST(TargetedLosses, GradientsAgreeWithFiniteDifferences) {
  const at::Tensor logits = test::random_tensor({7, 5}, 4);
  const AttackLabels labels{torch::arange(7, torch::kLong) % 5, (torch::arange(7, torch::kLong) + 2) % 5, true};
  for (const std::string& name : attack_loss_names())
    EXPECT_LT(test::gradient_error(
                  [&] { return (attack_loss_named(name)(logits, labels) * torch::arange(1, 8)).sum(); }, {logits}),
              1e-8)
        << name;
}

// Logits 2, 0, 1, 0: the smallest are those of 1 and 3, of which the higher counts. Logits 0, 1, 2, 3: the smallest is
// the label's own, the next that of 1.
TEST(ChosenTargets, LeastLikelyIsTheSmallestWrongLogit) {
  const at::Tensor z = torch::tensor({{2.0, 0.0, 1.0, 0.0}, {0.0, 1.0, 2.0, 3.0}}, torch::kDouble);
  AttackBatch batch{torch::zeros({2, 1}), {torch::zeros({2}, torch::kLong)}, torch::arange(2, torch::kLong)};
  EXPECT_TRUE(torch::equal(chosen_targets("least_likely", batch, z, 0), torch::tensor({3, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(chosen_targets("2", batch, z, 0), torch::tensor({2, 2}, torch::kLong)));
}

// Each of 3 wrong classes is drawn for about a third of the images: 1000 +- 5 standard deviations, sqrt(3000 * 2 / 9).
TEST(ChosenTargets, RandomIsAWrongClassThatFollowsFromSeedAndImage) {
  const int64_t n = 3000;
  const at::Tensor z = torch::zeros({n, 4}), image = torch::arange(n, torch::kLong);
  const AttackBatch batch{torch::zeros({n, 1}), {torch::ones({n}, torch::kLong)}, image};
  const at::Tensor targets = chosen_targets("random", batch, z, 5);
  EXPECT_EQ(targets.eq(1).sum().item<int64_t>(), 0);
  for (const int64_t label : {0, 2, 3}) EXPECT_NEAR(targets.eq(label).sum().item<double>(), 1000, 130) << label;
  const at::Tensor order = torch::tensor({int64_t{2999}, int64_t{5}, int64_t{17}}, torch::kLong);
  EXPECT_TRUE(torch::equal(chosen_targets("random", batch.select(order), z.index_select(0, order), 5),
                           targets.index_select(0, order)));
  EXPECT_FALSE(torch::equal(chosen_targets("random", batch, z, 6), targets));
  // Two classes leave one wrong one.
  EXPECT_TRUE(chosen_targets("random", batch, z.narrow(1, 0, 2), 5).eq(0).all().item<bool>());
}

TEST(ChosenTargets, RefusesWhatIsNoClass) {
  const AttackBatch batch{torch::zeros({2, 1}), {torch::zeros({2}, torch::kLong)}, torch::arange(2, torch::kLong)};
  for (const char* target : {"4", "-1", "", "cat", "1.5", "nan", "1e9", "99999999999999999999", "2 "})
    EXPECT_NE(testing::error_text<UsageError>([&] {
                chosen_targets(target, batch, torch::zeros({2, 4}), 0);
              }).find("or the number of a class, 0 to 3"),
              std::string::npos)
        << target;
}

TEST(TargetedAttacks, RefuseTargetsOfAnotherShape) {
  AttackedFunction model(three_logits);
  const auto attack = attacks().make("pgd", Json::object(), "pgd", {});
  AttackBatch batch = grey_image();
  for (const at::Tensor& target : {at::Tensor(), torch::zeros({2}, torch::kLong), torch::zeros({1}, torch::kFloat)}) {
    batch.labels = {torch::zeros({1}, torch::kLong), target, true};
    EXPECT_NE(testing::error_text([&] { attack->run(model, batch); }).find("one target per image, [1] int64"),
              std::string::npos);
  }
  batch.labels = {torch::ones({1, 3}, torch::kBool), torch::zeros({1}, torch::kLong), true};
  EXPECT_NE(testing::error_text([&] { attack->run(model, batch); }).find("one label"), std::string::npos);
}

}  // namespace sparsight::targeted_attack_test
