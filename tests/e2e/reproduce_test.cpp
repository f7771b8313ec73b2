// `sparsight reproduce` as a user runs it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/file_lock.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/fake_sbatch.h"
#include "tests/support/small_disk.h"

namespace sparsight::testing::reproduce_test {
namespace {

namespace fs = std::filesystem;

// Without the reader's own data, below a folder of its own.
ProgramResult reproduce(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reproduce");
  ProgramOptions options;
  options.folder = folder.path();
  options.environment = {{"SPARSIGHT_DATA", ""}};
  return run_program(arguments, options);
}

// Finished jobs by their folder's name, each with the time it was written at.
std::map<std::string, fs::file_time_type> jobs_in(const std::string& run) {
  std::map<std::string, fs::file_time_type> jobs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run + "/jobs", error))
    if (const fs::path result = entry.path() / "result.json"; fs::exists(result, error))
      jobs[entry.path().filename()] = fs::last_write_time(result, error);
  return jobs;
}

size_t leftovers(const std::string& run) {
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    count += entry.path().extension() == ".tmp" || entry.path().filename() == "lock";
  return count;
}

Json read_json(const std::string& file) { return Json::parse(read_file(file, 1 << 26)); }

TEST(ReproduceProgram, ListsWhatThereIs) {
  const TemporaryFolder folder;
  const ProgramResult text = reproduce(folder, {"list"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("| pmoe/fig3"), std::string::npos);
  EXPECT_NE(text.out.find("| MNIST "), std::string::npos);
  const Json list = Json::parse(reproduce(folder, {"list", "--json"}).out);
  EXPECT_EQ(list.at(0).at("name"), "pmoe/fig3");
}

TEST(ReproduceProgram, RunsAFigureIntoItsFolder) {
  const TemporaryFolder folder;
  const ProgramResult result = reproduce(folder, {"pmoe/fig3", "--synthetic"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("**synthetic substitute data: glyphs for MNIST"), std::string::npos);
  EXPECT_NE(result.out.find("holds"), std::string::npos);
  EXPECT_NE(result.out.find("report: runs/reproduce/pmoe/fig3-small/report.html"), std::string::npos);
  const std::string run = folder.path("runs/reproduce/pmoe/fig3-small");
  for (const char* file : {"jobs.json", "env.json", "result.csv", "result.json", "result.md", "trials.csv",
                           "trials.jsonl", "report.html", "composite-1.png"})
    EXPECT_TRUE(fs::exists(run + "/" + file)) << file;
  EXPECT_EQ(jobs_in(run).size(), 2u);
  EXPECT_EQ(leftovers(run), 0u);
  EXPECT_NE(read_file(run + "/report.html", 1 << 26).find("data:image/png;base64,"), std::string::npos);
}

// A folder that somebody else filled must not decide what runs there.
TEST(ReproduceProgram, RunsNothingOfTheWorkingFolder) {
  const TemporaryFolder folder;
  const std::string python = folder.write(".venv/bin/python", "#!/bin/sh\ntouch \"$0.was_run\"\n");
  fs::permissions(python, fs::perms::owner_all);
  folder.write("vl_convert.py", "open('module_was_run', 'w')\n");
  folder.write("os.py", "open('module_was_run', 'w')\n");
  const ProgramResult result = reproduce(folder, {"pmoe/t1", "--scale", "smoke", "--synthetic"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder.path("runs/reproduce/pmoe/t1-smoke/chart-1.vl.json")));
  EXPECT_FALSE(fs::exists(python + ".was_run"));
  EXPECT_FALSE(fs::exists(folder.path("module_was_run")));
}

// A link or a pipe in place of `jobs/ID/lock`: the program neither writes through it nor waits.
TEST(ReproduceProgram, ALockThatIsNoFileIsRefused) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run"), precious = folder.write("precious", "precious");
  const std::vector<std::string> command = {"pmoe/table1", "--run", run, "--jobs", "1"};
  ASSERT_EQ(reproduce(folder, command).exit_code, 0);
  const std::string job = run + "/jobs/" + jobs_in(run).begin()->first, lock = job + "/lock";
  for (const bool pipe : {false, true}) {
    fs::remove(job + "/result.json");
    if (pipe)
      ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
    else
      fs::create_symlink(precious, lock);
    const ProgramResult result = reproduce(folder, command);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find(lock + " as a lock: it is a link"), std::string::npos) << result.err;
    EXPECT_EQ(read_file(precious, 100), "precious");
    fs::remove(lock);
  }
}

// Another process writes the folder for as long as this one waits. A signal that comes before it waits ends it: then
// the machine is slow, and the next one comes later.
TEST(ReproduceProgram, EndsOnASignalWhileItWaitsForItsFolder) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    const std::string run = folder.path("run");
    create_folder(run);
    const Descriptor held = wait_for_folder(run);
    ProgramOptions options;
    options.timeout_seconds = 60;
    ProgramResult result;
    for (unsigned seconds = 2; seconds <= 32; seconds *= 2) {
      Program program({"reproduce", "pmoe/table1", "--run", run}, options);
      sleep(seconds);
      program.send(signal);
      result = program.wait();
      if (result.exit_code != 128 + signal) break;
    }
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("error: interrupted while another process was writing the folder"), std::string::npos)
        << result.err;
  }
}

TEST(ReproduceProgram, SettingsAreShownAndReachEveryProcess) {
  const TemporaryFolder folder;
  const ProgramResult shown = reproduce(folder, {"show", "pmoe/fig4", "--scale", "paper"});
  EXPECT_NE(shown.out.find("| [100,300,500,700,900,1000] "), std::string::npos) << shown.out << shown.err;
  const ProgramResult result = reproduce(folder, {"pmoe/fig9", "--synthetic", "--scale", "smoke", "--jobs", "2",
                                                  "--set", "trials=2", "--set", "samples=[40,60]", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("settings").at("samples"), Json({40, 60}));
  EXPECT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json.at("rows").at(0).at("found_1").at("values").size(), 2u);
  EXPECT_TRUE(fs::exists(folder.path("runs/reproduce/pmoe/fig9-smoke-trials=2-samples=40,60/trials.csv")));
}

TEST(ReproduceProgram, AClaimThatDoesNotHoldIsAResult) {
  const TemporaryFolder folder;
  const ProgramResult result = reproduce(folder, {"pmoe/bounds", "--jobs", "1", "--json", "--quiet"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("claims").at(4).at("holds"), false);
}

TEST(ReproduceProgram, JobsThatAreDoneAreNotDoneAgain) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const std::vector<std::string> command = {"pmoe/table1", "--run", run, "--jobs", "2"};
  ASSERT_EQ(reproduce(folder, command).exit_code, 0);
  const auto before = jobs_in(run);
  ASSERT_GT(before.size(), 10u);
  std::ofstream(run + "/jobs/" + before.begin()->first + "/result.json") << "{\"settings\": {\"trai";
  const ProgramResult again = reproduce(folder, command);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(
      again.err.find("warning: the job file " + run + "/jobs/" + before.begin()->first + "/result.json is damaged"),
      std::string::npos)
      << again.err;
  const auto after = jobs_in(run);
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, time] : before)
    if (name != before.begin()->first) {
      EXPECT_EQ(after.at(name), time) << name;
    }
  EXPECT_NE(after.begin()->second, before.begin()->second);
}

TEST(ReproduceProgram, GoesOnAfterKillMinusNine) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const std::vector<std::string> arguments = {"reproduce", "pmoe/bounds", "--run", run, "--jobs", "2", "--json"};
  ProgramOptions options;
  options.environment = {{"SPARSIGHT_DATA", ""}};
  Program program(arguments, options);
  for (int wait = 0; wait < 10000 && jobs_in(run).size() < 3; ++wait) usleep(1000);
  program.send(SIGKILL);  // its workers end with it
  program.wait();
  usleep(200000);
  const auto before = jobs_in(run);
  EXPECT_GE(before.size(), 3u);
  usleep(200000);
  EXPECT_EQ(jobs_in(run).size(), before.size()) << "a worker outlived the program that started it";
  const ProgramResult result = run_program(arguments, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto after = jobs_in(run);
  EXPECT_EQ(after.size(), Json::parse(result.out).at("rows").size());
  for (const auto& [name, time] : before) EXPECT_EQ(after.at(name), time) << name << " was done again";
  EXPECT_EQ(leftovers(run), 0u);
}

TEST(ReproduceProgram, TwoProcessesShareAFolder) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  ProgramOptions options;
  options.environment = {{"SPARSIGHT_DATA", ""}};
  const std::vector<std::string> command = {"reproduce", "pmoe/bounds", "--run", run, "--jobs", "2", "--json"};
  Program first(command, options), second(command, options);
  const ProgramResult one = first.wait(), two = second.wait();
  ASSERT_EQ(one.exit_code, 0) << one.err;
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(Json::parse(one.out).at("rows"), Json::parse(two.out).at("rows"));
  EXPECT_EQ(jobs_in(run).size(), Json::parse(one.out).at("rows").size());
  EXPECT_EQ(leftovers(run), 0u);
}

TEST(ReproduceProgram, APlanIsPrintedAndNothingMade) {
  const TemporaryFolder folder;
  const ProgramResult plan = reproduce(folder, {"pmoe/table1", "--plan"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.out.find("pmoe/table1: "), 0u) << plan.out;
  EXPECT_NE(plan.out.find(" 0 done, "), std::string::npos) << plan.out;
  EXPECT_TRUE(fs::is_empty(folder.path()));
  ASSERT_EQ(reproduce(folder, {"pmoe/table1"}).exit_code, 0);
  const ProgramResult again = reproduce(folder, {"pmoe/table1"});
  EXPECT_NE(again.err.find(" done, 0 left; they took "), std::string::npos)
      << "a run says its plan first: " << again.err;
  const Json json = Json::parse(reproduce(folder, {"pmoe/table1", "--plan", "--json"}).out);
  EXPECT_EQ(json.at("left"), 0);
  EXPECT_EQ(json.at("done"), json.at("jobs"));
}

TEST(ReproduceProgram, ABatchSchedulerDoesAllJobs) {
  const TemporaryFolder folder;
  const std::string sbatch = fake_sbatch(folder);
  const std::vector<std::string> figure = {"pmoe/table1", "--run", "the table"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = figure;
    all.insert(all.end(), more.begin(), more.end());
    return reproduce(folder, all);
  };
  const ProgramResult written = with({"--slurm", "array.sh", "--tasks", "4"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(written.out.find("wrote array.sh: submit it with sbatch"), std::string::npos) << written.out;
  EXPECT_TRUE(jobs_in(folder.path("the table")).empty()) << "nothing is done yet";
  EXPECT_NE(read_file(folder.path("array.sh"), 10000).find("#SBATCH --array=0-3\n"), std::string::npos);
  const ProgramResult submitted = run_sbatch(sbatch, "array.sh", folder.path());
  EXPECT_EQ(submitted.exit_code, 0) << read_file(folder.path("the table/slurm-1_0.log"), 10000);
  const Json plan = Json::parse(with({"--plan", "--json"}).out);
  EXPECT_EQ(plan.at("left"), 0);
  EXPECT_EQ(jobs_in(folder.path("the table")).size(), plan.at("jobs"));
  EXPECT_EQ(leftovers(folder.path("the table")), 0u);
  const auto before = jobs_in(folder.path("the table"));
  ASSERT_EQ(with({}).exit_code, 0) << "it makes the result";
  EXPECT_EQ(jobs_in(folder.path("the table")), before) << "and does nothing again";
  EXPECT_NE(with({"--slurm", "array.sh"}).err.find("are done; there is nothing to submit"), std::string::npos);
}

TEST(ReproduceProgram, RefusesWhatItCannotDo) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::vector<std::string>& arguments, int exit_code, const std::string& part) {
    const ProgramResult result = reproduce(folder, arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  expect({"pmoe/tabel1"}, 2, "unknown figure \"pmoe/tabel1\"; did you mean \"pmoe/table1\"? (known: pmoe/fig3");
  expect({}, 2, "what is required");
  expect({"pmoe/table1", "--scale", "huge"}, 2, "--scale");
  expect({"pmoe/table1", "--jobs", "0"}, 2, "--jobs");
  expect({"none.toml"}, 1, "cannot read none.toml: No such file or directory");
  expect({"none.toml", "--jobs", "2"}, 2, "apply to figures only");
  folder.write("mine/thesis.txt", "x");
  expect({"pmoe/table1", "--run", "mine"}, 1, "holds files that do not belong to jobs");
  expect({"pmoe/fig3", "--run", "made", "--data", "nowhere"}, 2, "--data: there is no folder nowhere");
  expect({"pmoe/fig3", "--run", "made"}, 1,
         "ubyte.gz in data/mnist; run `sparsight data fetch mnist` (`sparsight data where");
  expect({"pmoe/fig3", "--run", "made", "--data", "mine"}, 1, "mine/mnist; run `sparsight data fetch mnist`");
  expect({"pmoe/fig4", "--set", "trails=3"}, 2, "unknown setting trails; did you mean \"trials\"?");
  expect({"pmoe/fig4", "--set", "trials=0"}, 2, "trials must be from 1 to 100000, got 0");
  expect({"pmoe/table1", "--set", "trials=3"}, 2, "pmoe/table1 has no settings");
  expect({"show"}, 2, "is followed by a figure");
  EXPECT_FALSE(fs::exists(folder.path("made")));
  expect({"pmoe/table1", "--slurm", "a.sh", "--plan"}, 2, "--plan");
  expect({"pmoe/table1", "--slurm", ""}, 2, "--slurm");
  expect({"pmoe/table1", "--tasks", "3"}, 2, "--slurm");
  expect({"pmoe/table1", "--slurm", "a.sh", "--tasks", "0"}, 2, "--tasks");
  expect({"pmoe/table1", "--slurm", "none/a.sh", "--quiet"}, 1, "none/a.sh");
  expect({"pmoe/table1", "--slurm", "mine/thesis.txt"}, 1, "is not a script that sparsight wrote");
  expect({"pmoe/table1", "--task", "3/2"}, 2, "a task must be INDEX/COUNT");
  expect({"pmoe/tabel1", "--plan"}, 2, "did you mean");
  expect({"none.toml", "--plan"}, 2, "apply to figures only");
  expect({"pmoe/table1", "--plan", "--run", "mine"}, 1, "holds files that do not belong to jobs");
  ASSERT_EQ(reproduce(folder, {"pmoe/table1", "--run", "table"}).exit_code, 0);
  expect({"pmoe/table1", "--run", "table", "--scale", "paper"}, 1,
         "table holds pmoe/table1 at scale small, no data, not pmoe/table1 at scale paper, no data");
}

TEST(ReproduceProgram, AReadOnlyDiskEndsTheRun) {
  const TemporaryFolder folder;
  SmallDisk disk;
  if (!disk.mounted() || !disk.make_read_only()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const ProgramResult result = reproduce(folder, {"pmoe/table1", "--run", disk.folder().path("run")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("error: cannot make the folder"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("Read-only file system; choose a path on a writable disk"), std::string::npos);
}

TEST(ReproduceProgram, AFullDiskEndsTheRun) {
  const TemporaryFolder folder;
  const SmallDisk disk("size=24k");
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const ProgramResult result = reproduce(folder, {"pmoe/table1", "--run", disk.folder().path("run"), "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("No space left on device; free some space"), std::string::npos) << result.err;
}

TEST(ReproduceProgram, ChecksWhatAConfigurationClaims) {
  const TemporaryFolder folder;
  const std::string config = folder.write(
      "tiny.toml", std::string("# claim: test accuracy >= 1.0 %\n# claim: validation loss <= 0.0001\n") + kTinyConfig);
  const ProgramResult result = reproduce(folder, {config, "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("| test accuracy >= 1.0 %"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("does not hold"), std::string::npos);
  const Json claims = read_json(folder.path("runs/reproduce/tiny/claims.json"));
  EXPECT_EQ(claims.at(0).at("holds"), true);
  EXPECT_EQ(claims.at(1).at("holds"), false);
  const Json again = Json::parse(reproduce(folder, {config, "--json"}).out);
  EXPECT_EQ(again, claims) << "a finished run is not trained again";
  folder.write("tiny.toml", "# claim: test accuracy >= 1.0 %\n[run]\nseed = 9\n");
  EXPECT_NE(reproduce(folder, {config}).err.find("contains a run with different settings"), std::string::npos);
}

}  // namespace
}  // namespace sparsight::testing::reproduce_test
