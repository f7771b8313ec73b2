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
  // With other numbers of experts, a router guided by default trains unguided; one configured to be guided is an error.
  EXPECT_FALSE(guidance(config("experts = 4\n[router]\nname = \"per_image\""), three_classes()).defined());
  EXPECT_FALSE(guidance(config("experts = 4"), three_classes()).defined());
  EXPECT_THROW(guidance(config("experts = 4\n[losses]\nsuperclass = 0.3"), three_classes()), UsageError);
  EXPECT_THROW(guidance(config("[router]\nname = \"per_image\"\nteacher_forced = true"), DataInfo()), UsageError);
  EXPECT_FALSE(guidance(resolve(Config::from_text("[losses]\nsuperclass = 0.3", "test"), config_sections()),
                        three_classes())
                   .defined());  // no MoE layer
}

}  // namespace sparsight::guidance_test
