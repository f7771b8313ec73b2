// What a request means, and what of it is refused or replaced.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/run/attack_plan.h"
#include "tests/support/errors.h"

namespace sparsight::attack_plan_test {
namespace {

AttackRequest request(const std::string& attack, const std::vector<std::string>& overrides = {}) {
  AttackRequest request;
  request.attack = attack;
  request.overrides = overrides;
  return request;
}

std::string usage_error(const AttackRequest& wrong) {
  return testing::error_text<UsageError>([&] { plan_attack(wrong); });
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(AttackPlan, AutoattackIsTheStandardCascadeWithAllSettings) {
  const AttackPlan plan = plan_attack(request("autoattack"));
  EXPECT_EQ(plan.version, "standard");
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_EQ(plan.stages[0].name, "apgd-ce");
  EXPECT_EQ(plan.stages[0].settings["steps"], 100);
  EXPECT_EQ(plan.stages[3].settings["queries"], 5000);
  EXPECT_TRUE(plan.notes.empty());
}

TEST(AttackPlan, SettingsGoToTheStagesThatHaveThem) {
  const AttackPlan plan =
      plan_attack(request("autoattack", {"attack.steps=7", "attack.version=plus", "router.eval_k=1"}));
  ASSERT_EQ(plan.stages.size(), 6u);
  EXPECT_EQ(plan.stages[0].settings["steps"], 7);
  EXPECT_EQ(plan.stages[5].settings["steps"], 7);
  EXPECT_FALSE(plan.stages[3].settings.contains("steps"));
  EXPECT_EQ(plan.model_overrides, std::vector<std::string>{"router.eval_k=1"});
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_TRUE(says(plan.notes[0], "not the plus cascade of AutoAttack: steps = 7")) << plan.notes[0];
}

TEST(AttackPlan, A34_FitsTheLossToTheLabels) {
  const auto fitted = [](const std::string& attack, const std::vector<std::string>& overrides, bool several) {
    AttackPlan plan = plan_attack(request(attack, overrides));
    fit_to_labels(plan, several);
    return plan.stages.at(0).settings.value("loss", "");
  };
  const auto refusal = [&](const std::string& attack, const std::vector<std::string>& overrides) {
    return testing::error_text<UsageError>([&] { fitted(attack, overrides, true); });
  };
  EXPECT_EQ(fitted("pgd", {}, false), "cross_entropy");
  EXPECT_EQ(fitted("pgd", {}, true), "sigmoid_cross_entropy");
  EXPECT_EQ(fitted("apgd", {"attack.loss=margin"}, true), "margin");
  EXPECT_EQ(fitted("square", {}, true), "");
  EXPECT_EQ(fitted("autoattack", {}, false), "cross_entropy");
  EXPECT_TRUE(says(refusal("autoattack", {}), "--attack fgsm or --attack pgd or --attack apgd or --attack square"));
  EXPECT_TRUE(says(refusal("apgd_t", {}), "apgd_t is for images with one label"));
  EXPECT_TRUE(says(refusal("fab", {}), "fab is for images with one label"));
  EXPECT_TRUE(says(refusal("pgd", {"attack.loss=dlr"}), "attack.loss = dlr is for images with one label"));
  EXPECT_TRUE(says(refusal("pgd", {"attack.loss=cross_entropy"}), "use sigmoid_cross_entropy or margin"));
}

TEST(AttackPlan, A20_EpsilonIsInUnitsOfItsRange) {
  AttackRequest wide = request("pgd");
  wide.epsilon = "0.062745";
  wide.range = "-1..1";
  EXPECT_NEAR(plan_attack(wide).threat.epsilon, 8.0 / 255, 1e-6);
  wide.epsilon = "2";
  EXPECT_TRUE(says(usage_error(wide), "lets every pixel have any value"));
  EXPECT_TRUE(says(usage_error(request("pgd", {"attack.steps=0"})), "steps"));
  EXPECT_TRUE(says(usage_error(request("autoattack", {"attack.batch_size=9"})), "the program has --batch"));
  check_radius({Norm::l2, 5.5, {}}, 32);
  EXPECT_THROW(check_radius({Norm::l2, 5.7, {}}, 32), UsageError);  // sqrt(32) = 5.66
  check_radius({Norm::l1, 31.9, {}}, 32);
  EXPECT_EQ(testing::error_text<UsageError>([] {
              check_radius({Norm::l1, 32, {}}, 32);
            }),
            "the l1 epsilon 32 lets every pixel of an image of 32 values have any value; it must be below 32");
}

TEST(AttackPlan, NormsThatAnAttackDoesNotTakeAreRefused) {
  const auto in_l1 = [](const std::string& attack, const std::vector<std::string>& overrides = {}) {
    AttackRequest wanted = request(attack, overrides);
    wanted.norm = "l1";
    wanted.epsilon = "12";
    return wanted;
  };
  for (const char* attack : {"pgd", "apgd", "apgd_t", "fab", "fab_t"}) {
    const AttackPlan plan = plan_attack(in_l1(attack));
    EXPECT_EQ(plan.threat.norm, Norm::l1);
    EXPECT_EQ(plan.threat.epsilon, 12);
  }
  EXPECT_EQ(plan_attack(in_l1("autoattack", {"attack.version=rand"})).stages.size(), 2u);
  const std::string others =
      " does not take the norm l1; use --attack pgd or --attack apgd or --attack apgd_t or --attack fab or --attack "
      "fab_t";
  EXPECT_EQ(usage_error(in_l1("square")), "square" + others);
  EXPECT_EQ(usage_error(in_l1("fgsm")), "fgsm" + others);
  EXPECT_EQ(usage_error(in_l1("autoattack")), "autoattack, with its square," + others);
  EXPECT_EQ(attack_name(in_l1("apgd")), "apgd_l1_12");
}

TEST(AttackPlan, SingleAttacksMeasureDistances) {
  EXPECT_TRUE(measures_distances(plan_attack(request("fab_t"))));
  EXPECT_FALSE(measures_beyond_epsilon(plan_attack(request("fab"))));
  EXPECT_TRUE(measures_beyond_epsilon(plan_attack(request("fab", {"attack.distances=true"}))));
  EXPECT_FALSE(measures_distances(plan_attack(request("apgd"))));
  EXPECT_FALSE(measures_distances(plan_attack(request("autoattack"))));
  EXPECT_EQ(
      usage_error(request("autoattack", {"attack.distances=true"})),
      "attack.distances is of single attacks, since a cascade attacks what is left: --attack fab or --attack fab_t");
}

TEST(AttackPlan, LossesThatNeedMoreClassesAreReplacedWithANote) {
  AttackPlan plan = plan_attack(request("autoattack", {"attack.version=plus"}));
  fit_to_classes(plan, 10);
  EXPECT_TRUE(plan.notes.empty());
  AttackPlan three = plan;
  fit_to_classes(three, 3);
  ASSERT_EQ(three.notes.size(), 1u);
  EXPECT_TRUE(says(three.notes[0], "apgd-t is replaced by apgd on the margin")) << three.notes[0];
  EXPECT_EQ(three.stages[4].name, "apgd-margin");
  EXPECT_EQ(three.stages[4].settings["loss"], "margin");
  fit_to_classes(plan, 2);
  ASSERT_EQ(plan.notes.size(), 2u);
  EXPECT_EQ(plan.stages[1].settings["loss"], "margin");
  EXPECT_TRUE(says(plan.notes[0], "dlr loss needs 3 classes, the model has 2")) << plan.notes[0];
}

TEST(AttackPlan, A59_NoiseNeedsAveragedGradients) {
  const auto error = [](const AttackPlan& plan, bool randomised) {
    return testing::error_text<UsageError>([&] { check_passes(plan, randomised); });
  };
  EXPECT_EQ(error(plan_attack(request("autoattack")), false), "");
  EXPECT_TRUE(says(error(plan_attack(request("autoattack")), true), "attack.version=rand"));
  EXPECT_EQ(error(plan_attack(request("autoattack", {"attack.version=rand"})), true), "");
  EXPECT_EQ(error(plan_attack(request("pgd", {"attack.passes=20"})), true), "");
  // Square too: the margin of a single pass says little. FAB has no mean.
  const std::string square = error(plan_attack(request("square")), true);
  EXPECT_TRUE(says(square, "so square needs the mean of several")) << square;
  EXPECT_TRUE(says(square, "--set attack.passes=20 with --attack fgsm, pgd, apgd, apgd_t, square")) << square;
  EXPECT_EQ(error(plan_attack(request("square", {"attack.passes=20"})), true), "");
  EXPECT_TRUE(says(error(plan_attack(request("fab")), true), "so fab needs"));
}

TEST(AttackPlan, PackedWeightsNeedAttacksWithoutGradients) {
  const auto error = [](const AttackPlan& plan, const std::string& packed) {
    return testing::error_text<UsageError>([&] { check_gradients(plan, packed); });
  };
  EXPECT_EQ(error(plan_attack(request("square")), "int8"), "");
  EXPECT_EQ(error(plan_attack(request("fab")), ""), "");
  EXPECT_TRUE(says(error(plan_attack(request("fab")), "bf16"), "--attack square"));
}

TEST(AttackPlan, NamesOfFoldersAreTheRequest) {
  AttackRequest plain = request("autoattack");
  plain.epsilon = "4/255";
  EXPECT_EQ(attack_name(plain), "autoattack_linf_4_255");
  plain.weights = "int8";
  plain.range = "-1..1";
  EXPECT_EQ(attack_name(plain), "autoattack_linf_4_255_of_-1..1_int8");
}

}  // namespace sparsight::attack_plan_test
