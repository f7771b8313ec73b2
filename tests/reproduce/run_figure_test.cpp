#include "sparsight/reproduce/run_figure.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/jobs/job_store.h"
#include "sparsight/reproduce/result_charts.h"
#include "tests/data/sets/set_files.h"
#include "tests/reproduce/toy_figure.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::run_figure_test {
namespace {

namespace fs = std::filesystem;
using testing::error_text;
using testing::TemporaryFolder;
using testing::toy_figure;

FigureRequest request_in(const TemporaryFolder& folder) {
  FigureRequest request;
  request.run = {Scale::small, "", folder.path("run")};
  return request;
}

int64_t counted(const std::string& file) { return fs::exists(file) ? static_cast<int64_t>(fs::file_size(file)) : 0; }

int64_t jobs_done(const std::string& run) {
  int64_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run + "/jobs", error))
    count += fs::exists(entry.path() / "result.json");
  return count;
}

// Locks and temporary files.
int64_t leftovers(const std::string& run) {
  int64_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    count += entry.path().filename() == "lock" || entry.path().extension() == ".tmp";
  return count;
}

TEST(RunFigure, MeasuresEachJobOnce) {
  const TemporaryFolder folder;
  const std::string count = folder.path("count");
  const Figure figure = toy_figure({count, 2, 0});
  const FigureOutcome outcome = run_figure(figure, request_in(folder));
  EXPECT_EQ(counted(count), 12);
  EXPECT_TRUE(outcome.failed.empty());
  EXPECT_DOUBLE_EQ(*outcome.table.mean({{"model", "ours"}, {"x", 4}}, "y"), 40.5);  // of 40 and 41
  EXPECT_DOUBLE_EQ(*outcome.table.deviation({{"model", "ours"}, {"x", 4}}, "y"), 0.5);
  EXPECT_EQ(outcome.claims.at(0).measured, "40.5 at 4");
  EXPECT_TRUE(*outcome.claims.at(0).holds);
  run_figure(figure, request_in(folder));
  EXPECT_EQ(counted(count), 12) << "nothing is measured again";
  EXPECT_EQ(leftovers(folder.path("run")), 0);
}

TEST(RunFigure, GoesOnWhereItWasKilled) {
  const TemporaryFolder folder;
  const std::string count = folder.path("count"), run = folder.path("run");
  const Figure figure = toy_figure({count, 2, 50});
  const pid_t child = fork();
  if (child == 0) {
    run_figure(figure, request_in(folder));
    _exit(0);
  }
  while (jobs_done(run) < 4) usleep(5000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const int64_t done = jobs_done(run), begun = counted(count);
  ASSERT_LT(done, 12);
  EXPECT_LE(begun, done + 1);
  const FigureOutcome outcome = run_figure(toy_figure({count, 2, 0}), request_in(folder));
  EXPECT_EQ(counted(count), begun + 12 - done) << "only the job that it was at is done twice";
  EXPECT_DOUBLE_EQ(*outcome.table.mean({{"model", "theirs"}, {"x", 1}}, "y"), 10.5);
  EXPECT_EQ(leftovers(run), 0);
}

TEST(RunFigure, ProcessesShareTheJobsOfAFolder) {
  const TemporaryFolder folder;
  const std::string count = folder.path("count");
  const Figure figure = toy_figure({count, 4, 10});
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const FigureOutcome outcome = run_figure(figure, request_in(folder));
    _exit(outcome.table.rows.size() == 6 && outcome.table.rows[5].trials.size() == 4 ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "each ends with the whole table";
  }
  EXPECT_EQ(counted(count), 24);
}

TEST(RunFigure, TellsOfJobsThatFailAndTriesThemAgain) {
  const TemporaryFolder folder;
  Figure figure = toy_figure();
  const auto measure = figure.measure;
  figure.measure = [measure](const Json& job, const FigureRun& run) -> Json {
    if (job.at("x") == 4 && job.at("model") == "ours") fail("out of luck");
    if (job.at("x") == 1 && job.at("seed") == 1) return {{"z", 1}, {"y", "text"}};
    return measure(job, run);
  };
  const FigureOutcome outcome = run_figure(figure, request_in(folder));
  ASSERT_EQ(outcome.failed.size(), 4u);
  EXPECT_EQ(outcome.failed[0].error, "the job returned no number for y");
  EXPECT_EQ(outcome.failed[1].error, "out of luck");
  EXPECT_EQ(outcome.failed[1].settings, Json({{"model", "ours"}, {"x", 4}, {"seed", 0}}));
  EXPECT_EQ(outcome.claims.at(0).measured, "no y at 4");
  EXPECT_FALSE(outcome.claims.at(0).holds.has_value());
  EXPECT_TRUE(run_figure(toy_figure(), request_in(folder)).failed.empty());
}

TEST(RunFigure, StopsBetweenJobs) {
  const TemporaryFolder folder;
  const std::string count = folder.path("count");
  Figure figure = toy_figure({count, 2, 0});
  const auto measure = figure.measure;
  figure.measure = [&](const Json& job, const FigureRun& run) {
    if (counted(count) == 2) set_interrupted(true);
    return measure(job, run);
  };
  const std::string message = error_text([&] { run_figure(figure, request_in(folder)); });
  set_interrupted(false);
  EXPECT_EQ(message, "interrupted after 3 of 12 jobs; run the same command again to continue");
}

TEST(RunFigure, PassesAStopOnToItsProcesses) {
  const TemporaryFolder folder;
  const Figure figure = toy_figure();
  FigureRequest request = request_in(folder);
  request.processes = 2;
  const std::string stopped = folder.path("stopped");
  request.worker_command = {
      "/bin/sh", "-c",
      "trap 'echo >>" + stopped + "; exit 0' TERM; echo >>" + folder.path("ready") + "; while :; do sleep 0.05; done"};
  std::thread user([&] {
    while (counted(folder.path("ready")) < 2) usleep(10000);
    set_interrupted(true);
  });
  const std::string message = error_text([&] { run_figure(figure, request); });
  user.join();
  set_interrupted(false);
  EXPECT_EQ(message, "interrupted after 0 of 12 jobs; run the same command again to continue");
  EXPECT_EQ(counted(stopped), 2) << "both were told";
}

TEST(RunFigure, AProgramThatDoesNoJobsIsAnError) {
  const TemporaryFolder folder;
  const Figure figure = toy_figure();
  FigureRequest request = request_in(folder);
  request.processes = 2;
  request.worker_command = {"/bin/sh", "-c", "echo '{\"level\": \"error\", \"message\": \"no disk\"}'; exit 1"};
  EXPECT_EQ(error_text([&] { run_figure(figure, request); }), "no disk");
  request.worker_command = {"/bin/sh", "-c", "exit 3"};
  EXPECT_EQ(error_text([&] { run_figure(figure, request); }), "a worker process ended with exit code 3");
  request.worker_command = {"/bin/true"};
  EXPECT_EQ(error_text([&] { run_figure(figure, request); }),
            "worker processes end without finishing a job; the last one ended with exit code 0");
  request.worker_command = {"/no/such/program"};
  EXPECT_NE(error_text([&] { run_figure(figure, request); }).find("cannot start /no/such/program"), std::string::npos);
}

// A shell script instead of a worker: it takes the job's lock, writes its process ID, and dies.
TEST(RunFigure, AJobThatKillsItsProcessIsGivenUp) {
  const TemporaryFolder folder;
  Figure figure = toy_figure();
  const Json job = {{"model", "ours"}, {"x", 1}, {"seed", 0}};
  figure.jobs = [&](const FigureRun&) { return std::vector<Json>{job}; };
  FigureRequest request = request_in(folder);
  const std::string lock =
      JobStore(request.run.folder, run_text(figure, request.run)).job_folder(stored_jobs(figure, request.run).at(0)) +
      "/lock";
  fs::create_directories(fs::path(lock).parent_path());
  request.processes = 2;
  request.worker_command = {"/bin/sh", "-c",
                            "exec 9>>" + lock + "; flock -n 9 || exit 0; printf %s $$ >&9; kill -9 $$"};
  const FigureOutcome outcome = run_figure(figure, request);
  ASSERT_EQ(outcome.failed.size(), 1u);
  EXPECT_EQ(outcome.failed[0].error, "its process was ended by signal 9 (Killed)");
}

TEST(RunFigure, AJobHasAFolderOfItsOwn) {
  const TemporaryFolder folder;
  Figure figure = toy_figure();
  const auto measure = figure.measure;
  figure.measure = [&](const Json& job, const FigureRun& run) {
    write_file_atomically(run.job_folder + "/mine", job.dump());
    return measure(job, run);
  };
  run_figure(figure, request_in(folder));
  const FigureRun run = request_in(folder).run;
  const JobStore store(folder.path("run"), run_text(figure, run));
  for (const Json& job : stored_jobs(figure, run))
    EXPECT_EQ(read_file(store.job_folder(job) + "/mine", 1000), job.dump());
}

TEST(RunFigure, OtherDataInTheSameFolderIsAnErrorWithBothFingerprints) {
  const TemporaryFolder folder, digits, others;
  testing::write_mnist(digits, 20, "mnist/");
  testing::write_mnist(others, 30, "mnist/");
  Figure figure = toy_figure();
  figure.data = {{"mnist", "glyphs for MNIST"}};
  FigureRequest request = request_in(folder);
  request.run.data = digits.path();
  const FigureOutcome outcome = run_figure(figure, request);
  EXPECT_FALSE(outcome.table.paper({{"model", "ours"}, {"x", 1}}, "y")) << "custom data is not compared";
  ASSERT_FALSE(result_charts(outcome).empty());
  for (const Chart& chart : result_charts(outcome))
    EXPECT_NE(chart.note.find("custom data"), std::string::npos) << chart.title;
  const std::string first = outcome.data.fingerprint;
  request.run.data = others.path();
  const std::string second = read_data(figure.data, request.run).fingerprint;
  EXPECT_EQ(error_text([&] { run_figure(figure, request); }),
            cat(folder.path("run"), " holds toy/line at scale small, data ", first,
                ", not toy/line at scale small, data ", second, "; choose another folder with --run"));
}

TEST(RunFigure, EveryJobIsIdentifiedByScaleSettingsAndData) {
  Figure figure = toy_figure();
  const FigureRun run{Scale::small, "", "run"};
  const Json of = stored_jobs(figure, run).at(0).at("of");
  EXPECT_EQ(of, Json({{"figure", "toy/line"}, {"scale", "small"}, {"settings", Json::object()}, {"data", ""}}));
  figure.data = {{"mnist", "glyphs for MNIST"}};
  EXPECT_NE(job_id(stored_jobs(figure, run).at(0)), job_id(stored_jobs(toy_figure(), run).at(0)));
}

TEST(RunFigure, ScaleSmokeWithholdsEveryVerdict) {
  const TemporaryFolder folder;
  FigureRequest request = request_in(folder);
  request.run.scale = Scale::smoke;
  const FigureOutcome outcome = run_figure(toy_figure(), request);
  EXPECT_EQ(outcome.claims.at(0).measured, "40.5 at 4");
  EXPECT_FALSE(outcome.claims.at(0).holds);
  EXPECT_TRUE(outcome.claims.at(0).withheld);
}

TEST(RunFigure, FiguresOfTimesRunTheirJobsOneAfterTheOther) {
  const TemporaryFolder folder;
  Figure figure = toy_figure();
  figure.alone = true;
  FigureRequest request = request_in(folder);
  request.processes = 2;
  request.worker_command = {"/no/such/program"};
  EXPECT_TRUE(run_figure(figure, request).failed.empty());
}

TEST(RunFigure, APlanMakesNothing) {
  const TemporaryFolder folder;
  Figure figure = toy_figure();
  figure.expected_seconds = [](const Json& job, const FigureRun& run) {
    return job.at("x").get<double>() * (run.scale == Scale::small ? 1 : 60);
  };
  const JobPlan plan = plan_figure(figure, request_in(folder).run);
  EXPECT_FALSE(fs::exists(folder.path("run")));
  EXPECT_EQ(plan.left(), 12);
  EXPECT_DOUBLE_EQ(*plan.seconds_left, 4 * (1 + 2 + 4));  // two models, two seeds
  run_figure(figure, request_in(folder));
  EXPECT_EQ(plan_figure(figure, request_in(folder).run).left(), 0);
}

}  // namespace
}  // namespace sparsight::run_figure_test
