#include "sparsight/eval/guidance.h"

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/train/run_config.h"
#include "tests/support/near.h"

namespace sparsight::guidance_test {
namespace {

using test::near;

// Three classes of two super-classes: 0 and 2 of the first, 1 of the second.
DataInfo three_classes() {
  DataInfo data;
  data.name = "three";
  data.classes = {"a", "b", "c"};
  data.super_classes = {"first", "second"};
  data.super_class_of = {0, 1, 0};
  return data;
}

Json config(const std::string& more) {
  return resolve(Config::from_text("[moe]\nblocks = [-1]\n" + more, "test"), config_sections());
}

}  // namespace

TEST(Guidance, M18_TargetsAreTheSuperClassesOfHardLabels) {
  const at::Tensor membership = super_class_membership(three_classes());
  EXPECT_TRUE(torch::equal(membership, torch::tensor({{1.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}})));
  Batch batch;
  batch.labels = torch::tensor({2, 1, 0}, torch::kLong);
  EXPECT_TRUE(
      torch::equal(super_class_targets(batch, membership), torch::tensor({{1.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}})));
  EXPECT_FALSE(super_class_targets(batch, super_class_membership(DataInfo())).defined());
}

// s = y M: 0.7 of class 2 and 0.3 of class 1 (mixup); 0.9 + 0.1 / 3 and 0.1 / 3 (smoothing 0.1, label 1).
TEST(Guidance, M18_TargetsSumSoftLabelsOverTheClassesOfASuperClass) {
  Batch batch;
  batch.targets = torch::tensor({{0.f, .3f, .7f}, {.1f / 3, .9f + .1f / 3, .1f / 3}});
  const at::Tensor s = super_class_targets(batch, super_class_membership(three_classes()));
  EXPECT_TRUE(near(s, torch::tensor({{.7, .3}, {.2 / 3, .9 + .1 / 3}}, torch::kDouble), 1e-6));
  EXPECT_TRUE(near(s.sum(1), torch::ones({2}), 1e-6));
}

TEST(Guidance, AsManyExpertsAsSuperClassesAreGuided) {
  EXPECT_TRUE(guidance(config("experts = 2\n[router]\nname = \"per_image\""), three_classes()).defined());
  EXPECT_TRUE(guidance(config("experts = 2\n[losses]\nsuperclass = 0.3"), three_classes()).defined());
  EXPECT_FALSE(guidance(config("experts = 4"), three_classes()).defined());  // not guided
  EXPECT_FALSE(guidance(config("experts = 2"), three_classes()).defined());
  EXPECT_FALSE(guidance(resolve(Config::from_text("[losses]\nsuperclass = 0.3", "test"), config_sections()),
                        three_classes())
                   .defined());  // no MoE layer
}

TEST(Guidance, M27_AnotherNumberOfExpertsIsAnErrorThatSaysWhatToDo) {
  for (const char* guided :
       {"experts = 4\n[router]\nname = \"per_image\"", "experts = 4\n[losses]\nsuperclass = 0.3",
        "experts = 4\n[router]\nname = \"per_image\"\nteacher_forced = true\n[losses]\nsuperclass = 0"}) {
    try {
      guidance(config(guided), three_classes());
      ADD_FAILURE() << guided;
    } catch (const UsageError& error) {
      const std::string line = error.what();
      EXPECT_NE(line.find("three has 2 for the 4 experts"), std::string::npos) << line;
      for (const char* way : {"moe.experts = 2", "sparsight superclass", "losses.superclass = 0"})
        EXPECT_NE(line.find(way), std::string::npos) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos);
    }
  }
  const Json unguided = config("experts = 4\n[router]\nname = \"per_image\"\n[losses]\nsuperclass = 0");
  EXPECT_FALSE(guidance(unguided, three_classes()).defined());
  EXPECT_THROW(guidance(config("[router]\nname = \"per_image\""), DataInfo()), UsageError);
}

TEST(Guidance, EachGuidedLayerNeedsAsManyExpertsAsSuperClasses) {
  const std::string layer = "experts = 2\nblocks = [-2]\n[[moe.layer]]\nblocks = [-1]\n";
  const auto two = [&](const std::string& more) {
    return resolve(Config::from_text("[moe]\n" + layer + more + "[losses]\nsuperclass = 0.3", "test"),
                   config_sections());
  };
  EXPECT_TRUE(guidance(two("experts = 2\n"), three_classes()).defined());
  EXPECT_THROW(guidance(two("experts = 4\n"), three_classes()), UsageError);
  EXPECT_TRUE(guidance(two("experts = 4\nlosses = {superclass = 0}\n"), three_classes()).defined());
}

// A weight that rises from 0 guides as well.
TEST(Guidance, AScheduledWeightGuides) {
  const std::string rising =
      "experts = 2\nschedule = [{setting = \"losses.superclass\", from = 0, to = 0.3}]\n[losses]\nsuperclass = 0";
  EXPECT_TRUE(guidance(config(rising), three_classes()).defined());
}

TEST(Guidance, ImagesOfSeveralClassesAreRefused) {
  DataInfo several = three_classes();
  several.multi_label = true;
  EXPECT_THROW(guidance(config("experts = 2\n[losses]\nsuperclass = 0.3"), several), UsageError);
  EXPECT_FALSE(guidance(config("experts = 2"), several).defined());
}

TEST(Guidance, GuidingSuperClassesAreEmptyWhereNothingIsGuided) {
  const Json guided = config("experts = 2\n[losses]\nsuperclass = 0.3");
  EXPECT_EQ(guiding_super_classes(guided, three_classes()), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_TRUE(guiding_super_classes(config("experts = 2"), three_classes()).empty());
  EXPECT_TRUE(guiding_super_classes(config("experts = 4\n[losses]\nsuperclass = 0.3"), three_classes()).empty());
}

}  // namespace sparsight::guidance_test
