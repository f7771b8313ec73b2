#include "sparsight/jobs/run_jobs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "tests/jobs/toy_jobs.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::run_jobs_test {
namespace {

using testing::count_done;
using testing::error_text;
using testing::TemporaryFolder;
using testing::toy_jobs;

TEST(RunJobs, ResultsAreKept) {
  const TemporaryFolder folder;
  const JobList list = toy_jobs(3);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  work_here(list, store);
  EXPECT_EQ(store.read(list.settings[2])->result, 20);
  EXPECT_EQ(count_done(list, store), 3);
}

// A process was killed after it had written the result, before it removed its lock.
TEST(RunJobs, DoneJobsLoseTheLockOfAKilledProcess) {
  const TemporaryFolder folder;
  const JobList list = toy_jobs(2);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  work_here(list, store);
  const std::string lock = store.job_folder(list.settings[1]) + "/lock";
  std::ofstream(lock) << "12345";
  work_here(list, store);
  EXPECT_FALSE(std::filesystem::exists(lock));
  EXPECT_EQ(count_done(list, store), 2);
}

// Each of three jobs leaves a file "own". That of the second is damaged, and the result of the third has another digit:
// both run again, by all that work on jobs, and the first one does not.
TEST(RunJobs, DamagedJobsRunAgain) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(3);
  const auto good = list.run;
  std::vector<int64_t> run;
  list.run = [&](const Json& settings, const std::string& own) {
    run.push_back(settings.at("x").get<int64_t>());
    std::ofstream(own + "/own") << "whole";
    return good(settings, own);
  };
  list.damage = [](const std::string& own) {
    return read_file(own + "/own", 10) == "whole" ? "" : own + "/own is damaged";
  };
  const JobStore store(folder.path("run"), testing::kToyJobs);
  work_here(list, store);
  const auto damage = [&] {
    run.clear();
    std::ofstream(store.job_folder(list.settings[1]) + "/own") << "hole";
    const std::string file = store.job_folder(list.settings[2]) + "/result.json";
    std::string text = read_file(file, 10000);
    text[text.find("20")] = '3';
    write_file_atomically(file, text);
  };
  damage();
  work_here(list, store);
  EXPECT_EQ(run, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(store.read(list.settings[2])->result, 20);
  damage();
  EXPECT_EQ(work_on_task(list, store, {0, 1}).done, 3);
  EXPECT_EQ(run, (std::vector<int64_t>{1, 2}));
}

// A job of ten steps that writes down each step in its folder: killed after the fourth, it does six more, not ten.
TEST(RunJobs, AKilledJobGoesOnInItsFolder) {
  const TemporaryFolder folder;
  const std::string all = folder.path("all");
  JobList list = toy_jobs(1);
  const auto job = [&](int64_t die_at) {
    return [&all, die_at](const Json&, const std::string& own) -> Json {
      std::ifstream in(own + "/step");
      int64_t step = 0;
      in >> step;
      while (step < 10) {
        std::ofstream(own + "/step") << ++step;
        std::ofstream(all, std::ios::app) << "x";
        if (step == die_at) raise(SIGKILL);
      }
      return step;
    };
  };
  const pid_t child = fork();
  if (child == 0) {
    list.run = job(4);
    work_here(list, JobStore(folder.path("run"), testing::kToyJobs));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  list.run = job(0);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  work_here(list, store);
  EXPECT_EQ(store.read(list.settings[0])->result, 10);
  EXPECT_EQ(read_file(all, 100), "xxxxxxxxxx");
}

TEST(RunJobs, TasksDealAllJobs) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(7);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  const TaskResult second = work_on_task(list, store, {1, 3});  // 1, 4
  EXPECT_EQ(second.done, 2);
  EXPECT_TRUE(store.is_done(list.settings[1]) && store.is_done(list.settings[4]));
  EXPECT_EQ(count_done(list, store), 2);
  EXPECT_EQ(work_on_task(list, store, {0, 3}).done, 3);  // 0, 3, 6
  EXPECT_EQ(work_on_task(list, store, {2, 3}).done, 2);  // 2, 5
  EXPECT_EQ(count_done(list, store), 7);
  EXPECT_EQ(work_on_task(list, store, {9, 10}).done, 0) << "more tasks than jobs";
}

TEST(RunJobs, ATaskTriesFailedJobsAgainAndLeavesThoseOfOthers) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(3);
  const auto good = list.run;
  list.run = [](const Json&, const std::string&) -> Json { fail("out of luck"); };
  const JobStore store(folder.path("run"), testing::kToyJobs);
  const auto other = store.claim(list.settings[2]);
  const TaskResult failed = work_on_task(list, store, {0, 1});
  EXPECT_EQ(failed.failed, 2);
  EXPECT_EQ(failed.elsewhere, 1);
  EXPECT_EQ(store.failure(list.settings[0]), "out of luck");
  list.run = good;
  EXPECT_EQ(work_on_task(list, store, {0, 1}).done, 2);
  EXPECT_FALSE(store.has_failed(list.settings[0]));
}

TEST(RunJobs, AnInterruptEndsATaskBetweenJobs) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(4);
  const auto good = list.run;
  list.run = [&](const Json& settings, const std::string& own) {
    if (settings.at("x") == 1) set_interrupted(true);
    return good(settings, own);
  };
  const JobStore store(folder.path("run"), testing::kToyJobs);
  const std::string message = error_text([&] { work_on_task(list, store, {0, 1}); });
  set_interrupted(false);
  EXPECT_EQ(message, "interrupted after 2 jobs of task 0 of 1; run the same command again to continue");
  EXPECT_EQ(count_done(list, store), 2);
}

TEST(RunJobs, TasksAreReadAsIndexAndCount) {
  EXPECT_EQ(parse_array_task("3/27").index, 3);
  EXPECT_EQ(parse_array_task("3/27").count, 27);
  EXPECT_EQ(parse_array_task("0/1").index, 0);
  for (const char* wrong : {"", "3", "27/27", "0/0", "-1/3", "1/-3", "1/3/5", " 1/3", "1/3\n", "a/b", "1e2/1e3",
                            "99999999999999999999/99999999999999999999"})
    EXPECT_NE(error_text<UsageError>([&] { parse_array_task(wrong); }).find("a task must be INDEX/COUNT"),
              std::string::npos)
        << wrong;
}

}  // namespace
}  // namespace sparsight::run_jobs_test
