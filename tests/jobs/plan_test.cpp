#include "sparsight/jobs/plan.h"

#include <gtest/gtest.h>

#include "tests/jobs/toy_jobs.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::plan_test {
namespace {

using testing::TemporaryFolder;
using testing::toy_jobs;

TEST(Plan, NothingIsKnownBeforeTheFirstJob) {
  const JobPlan plan = plan_jobs(toy_jobs(4), nullptr);
  EXPECT_EQ(plan.left(), 4);
  EXPECT_FALSE(plan.seconds_left);
  EXPECT_EQ(plan_text(plan, 2), "toy: 4 jobs, 0 done, 4 left; the time is unknown until the first one is done");
  EXPECT_EQ(plan_json(plan).at("expected_hours"), Json());
  EXPECT_EQ(plan_json(plan).at("estimate"), Json());
}

// Jobs of a block are alike: the plan makes one of them, not all.
TEST(Plan, ABillionJobsThatAreNotStartedCostNothing) {
  constexpr size_t kJobs = 1'000'000'000;
  size_t made = 0;
  JobList list;
  list.name = "toy";
  list.settings.append(kJobs, [&](size_t x) {
    ++made;
    return Json{{"x", x}};
  });
  list.settings.push_back({{"x", "last"}});
  list.expected_seconds = [](const Json& job) { return job["x"] == "last" ? 7200.0 : 3.6; };
  const JobPlan plan = plan_jobs(list, nullptr);
  EXPECT_EQ(plan.jobs, 1'000'000'001);
  EXPECT_DOUBLE_EQ(*plan.seconds_left, 3.6e9 + 7200);
  EXPECT_DOUBLE_EQ(*plan.longest_left, 7200);
  EXPECT_LE(made, 2u);
  EXPECT_EQ(list.settings[kJobs - 1]["x"], kJobs - 1);
  EXPECT_EQ(list.settings.back()["x"], "last");
  EXPECT_EQ(
      testing::error_text<UsageError>([&] { check_can_run(list); }),
      "toy has 1000000001 jobs, and at most 1000000 can be run in one folder; choose fewer, such as fewer trials");
}

// Two jobs took 1800 and 5400 s: 3600 on average, so the three that are left take 3 hours, or 1.5 in two processes.
TEST(Plan, FinishedJobsTellHowLongTheOthersTake) {
  const TemporaryFolder folder;
  const JobList list = toy_jobs(5);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  store.finish(list.settings[0], {1, 1800});
  store.finish(list.settings[1], {1, 5400});
  store.record_failure(list.settings[2], "out of luck");
  const auto lock = store.claim(list.settings[3]);
  const JobPlan plan = plan_jobs(list, &store);
  EXPECT_DOUBLE_EQ(*plan.seconds_left, 3 * 3600);
  EXPECT_DOUBLE_EQ(plan.seconds_done, 7200);
  EXPECT_EQ(plan_text(plan, 2),
            "toy: 5 jobs, 2 done, 3 left (1 failed before, 1 running); estimated time 3 hours, 1.5 hours with 2 "
            "processes (based on the finished jobs)");
  EXPECT_EQ(plan_json(plan).at("estimate"), "measured");
}

// Estimates of 100, 200 and 300 s: 600 in total, and at least the longest, 300, with any number of processes.
TEST(Plan, AnExpectationOfTheListCounts) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(3);
  list.expected_seconds = [](const Json& settings) { return 100.0 * (settings.at("x").get<double>() + 1); };
  JobPlan plan = plan_jobs(list, nullptr);
  EXPECT_DOUBLE_EQ(*plan.seconds_left, 600);
  EXPECT_DOUBLE_EQ(*plan.longest_left, 300);
  EXPECT_EQ(plan_json(plan).at("estimate"), "declared");
  EXPECT_EQ(plan_text(plan, 3),
            "toy: 3 jobs, 0 done, 3 left; estimated time 0.17 hours, 0.083 hours with 3 processes (a rough "
            "estimate: no job is finished yet)");
  // The first took 50 s instead of 100: the others are estimated at half of the list's numbers, 100 + 150.
  const JobStore store(folder.path("run"), testing::kToyJobs);
  store.finish(list.settings[0], {1, 50});
  plan = plan_jobs(list, &store);
  EXPECT_DOUBLE_EQ(*plan.seconds_left, 250);
  EXPECT_DOUBLE_EQ(*plan.longest_left, 150);
}

TEST(Plan, WhereAllIsDoneItSaysWhatItTook) {
  const TemporaryFolder folder;
  const JobList list = toy_jobs(1);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  store.finish(list.settings[0], {1, 7200});
  EXPECT_EQ(plan_text(plan_jobs(list, &store), 2), "toy: 1 job, 1 done, 0 left; they took 2 hours");
}

}  // namespace
}  // namespace sparsight::plan_test
