#include "sparsight/dist/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include "sparsight/core/error.h"
#include "sparsight/dist/address.h"
#include "sparsight/dist/join.h"
#include "sparsight/dist/rank_zero.h"
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

TEST(Group, ARankThatLeavesIsNamedByTheOthersWithTheirStep) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const std::vector<std::string> errors = run_ranks(3, [&](const dist::GroupPtr& group) {
    group->barrier();
    group->set_step(12 + group->rank());
    if (group->rank() == 1) return;
    for (int i = 0; i < 3; ++i) group->barrier();
  });
  EXPECT_EQ(errors[1], "");
  const std::string host = dist::host_name();
  for (const size_t rank : {0, 2})
    EXPECT_EQ(errors[rank].find(cat("rank ", rank, " of 3 (", host, ") lost its group at step ", 12 + rank,
                                    ": rank 1 (", host, ") has ended, cannot be reached or is late: ")),
              0)
        << errors[rank];
}

// A group without steps: that of a prediction.
TEST(Group, ALateRankIsNamedByTheOthersAlsoOfASubgroup) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  std::promise<void> over;
  const std::shared_future<void> wait(over.get_future());
  std::atomic<int> lost{0};
  const std::vector<std::string> errors = run_ranks(
      4,
      [&](const dist::GroupPtr& group) {
        if (group->rank() == 0) return;
        const dist::GroupPtr some = group->subgroup("some", {1, 2, 3});
        if (group->rank() == 2) return static_cast<void>(wait.wait_for(std::chrono::seconds(60)));
        try {
          some->barrier();
        } catch (...) {
          if (++lost == 2) over.set_value();
          throw;
        }
      },
      /*timeout_seconds=*/2);
  const std::string host = dist::host_name();
  for (const size_t rank : {1, 3})
    EXPECT_EQ(errors[rank].find(cat("rank ", rank, " of 4 (", host, ") lost its group: rank 2 (", host,
                                    ") has ended, cannot be reached or is late: ")),
              0)
        << errors[rank];
}

TEST(Group, RankZeroGathersBytesOfAnyLengths) {
  dist::Group alone;
  EXPECT_EQ(dist::gather_bytes(alone, "own"), std::vector<std::string>{"own"});
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  EXPECT_TRUE(none_failed(run_ranks(3, [&](const dist::GroupPtr& group) {
    const auto rank = static_cast<size_t>(group->rank());
    const std::vector<std::string> some = dist::gather_bytes(*group, std::string(2 * rank, 'a')),
                                   none = dist::gather_bytes(*group, "");
    if (rank == 0) {
      EXPECT_EQ(some, (std::vector<std::string>{"", "aa", "aaaa"}));
      EXPECT_EQ(none, std::vector<std::string>(3));
    } else {
      EXPECT_TRUE(some.empty() && none.empty());
    }
  })));
}

TEST(Group, WhatRankZeroMakesOrRaisesAllRanksGet) {
  dist::Group alone;
  EXPECT_EQ(dist::from_rank_zero(alone, [] { return std::string("own"); }), "own");
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const std::vector<std::string> errors = run_ranks(3, [&](const dist::GroupPtr& group) {
    const auto text = [&] { return "of rank " + std::to_string(group->rank()); };
    EXPECT_EQ(dist::from_rank_zero(*group, text), "of rank 0");
    EXPECT_EQ(dist::from_rank_zero(*group, [] { return std::string(); }), "");
    try {
      dist::from_rank_zero(*group, []() -> std::string { fail_usage("not so"); });
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_EQ(dynamic_cast<const dist::RankZeroError*>(&error) == nullptr, group->leads());
      throw;
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "not so");
}

namespace {

// What two ranks say that join with these settings.
std::vector<std::string> joined(const std::function<void(dist::GlooSettings&)>& set) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      dist::GlooSettings settings{.rank = rank, .size = 2, .store_file = folder.path("store"), .timeout_seconds = 2};
      set(settings);
      try {
        dist::join_gloo(settings);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

bool says(const std::string& error, const std::string& text) { return error.find(text) != std::string::npos; }

}  // namespace

TEST(Group, RanksOfAnotherRunDoNotJoin) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  EXPECT_TRUE(none_failed(joined([](dist::GlooSettings& settings) { settings.token = "one"; })));
  const auto errors = joined([](dist::GlooSettings& settings) { settings.token = settings.rank == 0 ? "one" : "two"; });
  EXPECT_TRUE(says(errors[0], "rank 0 of 2 (") && says(errors[0], "rank 1 has not come within 2 s")) << errors[0];
  EXPECT_TRUE(says(errors[1], "rank 1 of 2 (") && says(errors[1], "rank 0 there belongs to another run")) << errors[1];
}

TEST(Group, RanksOfAnotherVersionAreNamedByAll) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const auto errors = joined([](dist::GlooSettings& settings) { settings.program = settings.rank == 0 ? "1" : "2"; });
  for (const std::string& error : errors)
    EXPECT_TRUE(says(error, "rank 1 runs version 2 of the program, rank 0 1; install the same one")) << error;
}

TEST(Group, ARankThatDoesNotComeIsNamed) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const testing::TemporaryFolder folder;
  const std::string error = testing::error_text(
      [&] { dist::join_gloo({.rank = 0, .size = 3, .store_file = folder.path("store"), .timeout_seconds = 1}); });
  EXPECT_TRUE(says(error, "rank 0 of 3 (") && says(error, "rank 1 has not come within 1 s")) << error;
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
