#include "sparsight/dist/expert_ranks.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include "sparsight/dist/join.h"
#include "tests/dist/ranks.h"
#include "tests/support/errors.h"

namespace sparsight {
namespace {

std::vector<int64_t> members(dist::Group& group, int64_t rank) {
  std::vector<int64_t> ranks;
  const at::Tensor all = group.all_gather(at::full({1}, rank, at::kLong)).reshape({-1}).contiguous();
  for (int64_t i = 0; i < all.numel(); ++i) ranks.push_back(all.const_data_ptr<int64_t>()[i]);
  return ranks;
}

}  // namespace

TEST(ExpertRanks, S31_SuccessiveRanksHaveAllExpertsAndEveryNthTheSame) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  EXPECT_TRUE(test::none_failed(test::run_ranks(4, [](const dist::GroupPtr& all) {
    const int64_t rank = all->rank();
    const dist::ExpertRanks two = dist::share_out_experts(all, 2);
    EXPECT_EQ(members(*two.parts, rank), (rank < 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{2, 3}));
    EXPECT_EQ(members(*two.copies, rank), (std::vector<int64_t>{rank % 2, rank % 2 + 2}));
    EXPECT_EQ(two.parts->rank(), rank % 2);
    EXPECT_EQ(two.copies->rank(), rank / 2);
    const dist::ExpertRanks one = dist::share_out_experts(all, 1), four = dist::share_out_experts(all, 4);
    EXPECT_EQ(one.parts->size(), 1);
    EXPECT_EQ(members(*one.copies, rank).size(), 4U);
    EXPECT_EQ(members(*four.parts, rank).size(), 4U);
    EXPECT_EQ(four.copies->size(), 1);
    const std::string error = testing::error_text<UsageError>([&] { dist::share_out_experts(all, 3); });
    EXPECT_EQ(error,
              "dist.expert_parallel = 3 spreads experts over 3 processes, but 4 processes train; use --processes 3 or "
              "a multiple of it, or set dist.expert_parallel = 1");
  })));
}

}  // namespace sparsight
