#include "sparsight/dg/ablations.h"

#include <gtest/gtest.h>

#include <set>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::ablations_test {
namespace {

using Strings = std::vector<std::string>;

Strings factor_settings(const std::string& factor) {
  Strings all;
  const Ablation ablation = ablations_named({factor}).front();
  for (const AblationSetting& setting : ablation.settings)
    all.insert(all.end(), setting.settings.begin(), setting.settings.end());
  return all;
}

}  // namespace

// Section 7.5 of the specification, key by key.
TEST(Ablations, G57_CoverEveryKey) {
  EXPECT_EQ(factor_settings("router"), (Strings{"router.name=cosine", "router.name=softmax_topk"}));
  EXPECT_EQ(factor_settings("temperature"),
            (Strings{"router.learn_temperature=true", "router.learn_temperature=false"}));
  EXPECT_EQ(factor_settings("experts"),
            (Strings{"moe.experts=2", "moe.experts=4", "moe.experts=6", "moe.experts=8", "moe.experts=12"}));
  EXPECT_EQ(factor_settings("k"), (Strings{"router.k=1", "router.k=2", "router.k=4"}));
  EXPECT_EQ(factor_settings("noise"), (Strings{"router.noise=1", "router.noise=0"}));
  EXPECT_EQ(factor_settings("importance_loss"), (Strings{"losses.vmoe_importance=-1", "losses.vmoe_importance=0"}));
  EXPECT_EQ(factor_settings("load_loss"), (Strings{"losses.vmoe_load=-1", "losses.vmoe_load=0"}));
  EXPECT_EQ(factor_settings("initial_experts"), (Strings{"train.upcycle=copy", "train.upcycle=random"}));
  EXPECT_EQ(factor_settings("size"), (Strings{"model.size=tiny", "model.size=small", "model.size=base"}));
  const Ablation placement = ablations_named({"placement"}).front();
  ASSERT_EQ(placement.settings.size(), 2u);
  EXPECT_EQ(placement.settings[0].blocks(12), (std::vector<int64_t>{8, 10}));
  EXPECT_EQ(placement.settings[1].blocks(12), (std::vector<int64_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(gmoe_ablations().size(), 10u);
}

TEST(Ablations, PlacementsOfOtherDepths) {
  EXPECT_EQ(last_two_blocks(5), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(last_two_blocks(2), (std::vector<int64_t>{0}));
  EXPECT_EQ(every_two_blocks(5), (std::vector<int64_t>{0, 2, 4}));
}

TEST(Ablations, OwnFactors) {
  const Ablation own = own_ablation("moe.blocks=[2],[0,2]");
  EXPECT_EQ(own.name, "moe.blocks");
  ASSERT_EQ(own.settings.size(), 2u);
  EXPECT_EQ(own.settings[1].name, "[0,2]");
  EXPECT_EQ(own.settings[1].settings, (Strings{"moe.blocks=[0,2]"}));
  EXPECT_EQ(own_ablation("router.k=1").settings.size(), 1u);
  EXPECT_EQ(own_ablation("a.b=\"x,y\",z").settings.size(), 2u);
  for (const char* wrong : {"", "router.k", "k=1", "router.k=", "router.k=1,", ".k=1", "router.=1", "router.k=1,1"})
    EXPECT_THROW(own_ablation(wrong), UsageError) << wrong;
  const std::string message = testing::error_text([] { ablations_named({"routr"}); });
  EXPECT_NE(message.find("did you mean \"router\""), std::string::npos) << message;
}

}  // namespace sparsight::ablations_test
