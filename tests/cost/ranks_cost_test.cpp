// Worked by hand: alpha = 1 ms, beta = 1 MB/s; a model of 1000 parameters and one MoE layer of 8 experts with 2000
// parameters in all, whose rows have 8 numbers and results 4; 5 images of a minibatch with 10 rows each.
#include "sparsight/cost/ranks_cost.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::ranks_cost_test {
namespace {

const Network kNetwork{"slow", "by hand", 1e-3, 1e6};
const RankWork kWork{.compute_seconds = 0.1,
                     .minibatches = 1,
                     .images = 5,
                     .other_parameters = 1000,
                     .layers = {{"blocks.1.mlp", 10, 8, 4, 8, 2000}}};

}  // namespace

// 3 messages of 1000 of 4000 bytes: 3 ms + 3000 / 1e6 s.
TEST(RanksCost, AnAllToAllLeavesOutWhatARankKeeps) {
  EXPECT_DOUBLE_EQ(all_to_all_seconds(4000, 4, kNetwork), 0.006);
  EXPECT_DOUBLE_EQ(all_to_all_seconds(4000, 1, kNetwork), 0);
}

// A reduce-scatter and an all-gather of 6 ms each; a second minibatch has a reduce-scatter more.
TEST(RanksCost, SumsTakeAnAllToAllPerMinibatchAndAnAllGather) {
  EXPECT_DOUBLE_EQ(ordered_sum_seconds(4000, 4, 1, kNetwork), 0.012);
  EXPECT_DOUBLE_EQ(ordered_sum_seconds(4000, 4, 2, kNetwork), 0.018);
}

// 50 rows of 8 numbers are 1600 bytes, of 4 numbers 800; 3/4 of them leave a rank: 3 ms + 1.2 ms out, 3 ms + 0.6 ms
// back, and the gradients of both; counts of 64 bytes: 3 ms + 0.048 ms.
TEST(RanksCost, RowsTravelToExpertsAndBackAndSoDoTheirGradients) {
  EXPECT_NEAR(expert_exchange_seconds(kWork, 4, kNetwork), 2 * (0.0042 + 0.0036) + 0.003048, 1e-12);
}

TEST(RanksCost, DataParallelSumsAllParameters) {
  const RanksStep step = ranks_step(kWork, 4, 1, kNetwork);
  EXPECT_DOUBLE_EQ(step.compute, 0.1);
  EXPECT_DOUBLE_EQ(step.sums, 0.024);  // 12000 bytes: 2 (3 ms + 9 ms)
  EXPECT_EQ(step.exchanges, 0);
  EXPECT_EQ(step.parameters, 3000);
  EXPECT_NEAR(step.efficiency(), 0.1 / 0.124, 1e-12);
}

TEST(RanksCost, ExpertParallelSumsWhatAllRanksHave) {
  const RanksStep step = ranks_step(kWork, 4, 4, kNetwork);
  EXPECT_DOUBLE_EQ(step.sums, 0.012);  // 4000 bytes; each expert is on one rank
  EXPECT_NEAR(step.exchanges, 0.018648, 1e-12);
  EXPECT_EQ(step.parameters, 1500);
}

// Two groups of two ranks: 1000 parameters summed over 4 ranks, the 1000 of a rank's experts over 2: 2 (1 ms + 2 ms).
// Rows travel between two ranks: 2 (1.8 + 1.4 ms), counts 1.032 ms.
TEST(RanksCost, BothSumExpertsOverTheGroupsThatHaveThem) {
  const RanksStep step = ranks_step(kWork, 4, 2, kNetwork);
  EXPECT_DOUBLE_EQ(step.sums, 0.012 + 0.006);
  EXPECT_NEAR(step.exchanges, 2 * (0.0018 + 0.0014) + 0.001032, 1e-12);
  EXPECT_EQ(step.parameters, 2000);
}

// data: 24 ms, experts: 30.648 ms, both: 25.432 ms.
TEST(RanksCost, TheFastestIsTheBest) {
  const RanksChoice choice = ranks_choice(kWork, 4, kNetwork);
  EXPECT_EQ(choice.best(), "data");
  ASSERT_TRUE(choice.experts && choice.both);
  EXPECT_EQ(choice.both->expert_ranks, 2);
  RankWork large = kWork;
  large.layers[0].parameters = 80'000;  // data: 2 (3 + 243) ms; experts as before; both: 12 + 2 (1 + 80) + 7.4 ms
  EXPECT_EQ(ranks_choice(large, 4, kNetwork).best(), "expert");
  large.layers[0].experts = 2;  // not over four ranks
  EXPECT_FALSE(ranks_choice(large, 4, kNetwork).experts);
  EXPECT_EQ(ranks_choice(large, 4, kNetwork).best(), "both");
  EXPECT_EQ(ranks_choice(kWork, 1, kNetwork).best(), "none");
  EXPECT_DOUBLE_EQ(ranks_choice(kWork, 1, kNetwork).data.seconds(), 0.1);
  large.layers.clear();
  EXPECT_FALSE(ranks_choice(large, 4, kNetwork).both);
}

TEST(RanksCost, ListsAndRangesOfRanks) {
  EXPECT_EQ(parse_ranks("1,2,6"), (std::vector<int64_t>{1, 2, 6}));
  EXPECT_EQ(parse_ranks("1..10"), (std::vector<int64_t>{1, 2, 4, 8, 10}));
  EXPECT_EQ(parse_ranks("3..3"), (std::vector<int64_t>{3}));
  for (const char* const wrong : {"", "0", "1,", "2..1", "1..x", "-1", "1..2..3", "1000001"})
    EXPECT_NE(testing::error_text<UsageError>([&] { parse_ranks(wrong); }).find("--ranks"), std::string::npos) << wrong;
}

TEST(RanksCost, AnUnknownNetworkListsTheKnownOnes) {
  EXPECT_EQ(find_network("nvlink").beta, 450e9);
  EXPECT_NE(testing::error_text<UsageError>([] { find_network("ethernet"); }).find("10gbe"), std::string::npos);
}

}  // namespace sparsight::ranks_cost_test
