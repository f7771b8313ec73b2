#include "sparsight/dist/group.h"

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include "sparsight/dist/join.h"
#include "tests/dist/ranks.h"
#include "tests/support/environment_variable.h"
#include "tests/support/errors.h"

namespace sparsight {
namespace {

using test::none_failed, test::run_ranks;

// Rank r's numbers: 100 r, 100 r + 1, ...
at::Tensor numbers(int64_t rank, int64_t count) { return at::arange(count, at::kLong) + 100 * rank; }

}  // namespace

TEST(Group, AProcessAloneIsAGroup) {
  dist::Group alone;
  EXPECT_EQ(alone.size(), 1);
  EXPECT_TRUE(alone.leads());
  EXPECT_TRUE(alone.all_gather(numbers(0, 3)).equal(numbers(0, 3).view({1, 3})));
  EXPECT_TRUE(alone.all_to_all(numbers(0, 3), {3}, {3}).equal(numbers(0, 3)));
  EXPECT_EQ(alone.broadcast("text"), "text");
  EXPECT_EQ(alone.all_gather_bytes("text"), std::vector<std::string>{"text"});
  EXPECT_TRUE(alone.any(true));
  EXPECT_FALSE(alone.any(false));
}

TEST(Group, CollectivesOfOneToFourRanks) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  for (int64_t ranks = 1; ranks <= 4; ++ranks)
    EXPECT_TRUE(none_failed(run_ranks(ranks, [&](const dist::GroupPtr& group) {
      const int64_t rank = group->rank();
      EXPECT_EQ(group->size(), ranks);
      const at::Tensor gathered = group->all_gather(numbers(rank, 3));
      for (int64_t r = 0; r < ranks; ++r) EXPECT_TRUE(gathered[r].equal(numbers(r, 3)));

      // Rank r sends r rows to rank 0, r + 1 to rank 1, ...: none at all too.
      std::vector<int64_t> sent, received;
      int64_t all = 0;
      for (int64_t r = 0; r < ranks; ++r) sent.push_back(rank + r), received.push_back(r + rank), all += rank + r;
      const at::Tensor rows = at::stack({numbers(rank, all), numbers(rank, all) * 2}, 1);
      const at::Tensor got = group->all_to_all(rows, sent, received);
      int64_t at = 0;
      for (int64_t r = 0; r < ranks; ++r) {
        int64_t skipped = 0;
        for (int64_t to = 0; to < rank; ++to) skipped += r + to;
        for (int64_t i = 0; i < r + rank; ++i, ++at) {
          EXPECT_EQ(got[at][0].item<int64_t>(), 100 * r + skipped + i);
          EXPECT_EQ(got[at][1].item<int64_t>(), 2 * (100 * r + skipped + i));
        }
      }
      EXPECT_EQ(got.size(0), at);

      EXPECT_EQ(group->broadcast("from rank " + std::to_string(rank)), "from rank 0");
      EXPECT_EQ(group->broadcast(""), "");
      const std::vector<std::string> texts = group->all_gather_bytes(std::string(static_cast<size_t>(rank), 'x'));
      for (int64_t r = 0; r < ranks; ++r) EXPECT_EQ(texts[static_cast<size_t>(r)].size(), static_cast<size_t>(r));
      EXPECT_EQ(group->any(rank == ranks - 1), true);
      EXPECT_EQ(group->any(false), false);
    }))) << ranks;
}

TEST(Group, OtherSettingsAreAnErrorOfEveryRankThatNamesTheOneWithThem) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const std::vector<std::string> errors = run_ranks(3, [&](const dist::GroupPtr& group) {
    dist::check_same(*group, "version", "1");
    dist::check_same(*group, "configuration", group->rank() == 2 ? "b" : "a");
  });
  for (const std::string& error : errors)
    EXPECT_EQ(error,
              "rank 2 was started with another configuration than rank 0; start all ranks with the same command");
}

TEST(Group, ARankThatLeavesIsAnErrorOfTheOthers) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const std::vector<std::string> errors = run_ranks(3, [&](const dist::GroupPtr& group) {
    group->barrier();
    if (group->rank() == 1) return;
    for (int i = 0; i < 3; ++i) group->barrier();
  });
  EXPECT_EQ(errors[1], "");
  for (const size_t rank : {0, 2}) EXPECT_NE(errors[rank].find("lost its group"), std::string::npos) << errors[rank];
}

TEST(Group, VariablesThatMakeNoSenseAreNamed) {
  const test::EnvironmentVariable store("SPARSIGHT_STORE", nullptr), address("MASTER_ADDR", nullptr);
  {
    const test::EnvironmentVariable size("WORLD_SIZE", nullptr);
    EXPECT_EQ(dist::join_group()->size(), 1);
  }
  for (const char* const wrong : {"0", "-1", "two", "1e3", "99999999999999999999"}) {
    const test::EnvironmentVariable size("WORLD_SIZE", wrong);
    EXPECT_NE(testing::error_text([] { dist::join_group(); }).find("WORLD_SIZE"), std::string::npos);
  }
  const test::EnvironmentVariable size("WORLD_SIZE", "2");
  {
    const test::EnvironmentVariable rank("RANK", nullptr);
    EXPECT_NE(testing::error_text([] { dist::join_group(); }).find("RANK is not"), std::string::npos);
  }
  {
    const test::EnvironmentVariable rank("RANK", "2");
    EXPECT_NE(testing::error_text([] { dist::join_group(); }).find("RANK is \"2\""), std::string::npos);
  }
  const test::EnvironmentVariable rank("RANK", "0");
  EXPECT_NE(testing::error_text([] { dist::join_group(); }).find("MASTER_ADDR"), std::string::npos);
}

}  // namespace sparsight
