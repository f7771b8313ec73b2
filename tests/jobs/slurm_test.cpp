#include "sparsight/jobs/slurm.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "tests/jobs/toy_jobs.h"
#include "tests/support/errors.h"
#include "tests/support/fake_sbatch.h"

namespace sparsight::slurm_test {
namespace {

namespace fs = std::filesystem;
using testing::error_text;
using testing::fake_sbatch;
using testing::run_sbatch;
using testing::TemporaryFolder;
using testing::toy_jobs;

// An array whose tasks append their arguments to `done`.
SlurmArray array_in(const TemporaryFolder& folder, const std::vector<int64_t>& tasks) {
  SlurmArray array;
  array.name = "toy/line at home";
  array.working_folder = array.log_folder = folder.path();
  array.command = {"/bin/sh", "-c", "echo \"$1\" >> done; echo said", "sh", "--task="};
  array.count = 12;
  array.tasks = tasks;
  return array;
}

bool has_line(const std::string& script, const std::string& line) {
  return script.find("\n" + line + "\n") != std::string::npos;
}

TEST(Slurm, WritesAnArray) {
  const TemporaryFolder folder;
  SlurmArray array = array_in(folder, {0, 1, 2, 5, 7, 8, 11});
  array.threads = 4;
  std::string script = slurm_script(array);
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n"));
  EXPECT_TRUE(has_line(script, "#SBATCH --array=0-2,5,7-8,11"));
  EXPECT_TRUE(has_line(script, "#SBATCH --job-name=sparsight-toy-line-at-home"));
  EXPECT_TRUE(has_line(script, "#SBATCH --cpus-per-task=4"));
  EXPECT_EQ(script.find("--time="), std::string::npos) << "nothing is known";
  array.seconds = 3600;  // twice an hour and ten minutes: 130
  EXPECT_TRUE(has_line(slurm_script(array), "#SBATCH --time=130"));
}

TEST(Slurm, EveryTaskIsRunOnce) {
  const TemporaryFolder folder;
  write_slurm_script(folder.path("array.sh"), array_in(folder, {0, 1, 5}));
  EXPECT_EQ(run_sbatch(fake_sbatch(folder), "array.sh", folder.path()).exit_code, 0);
  EXPECT_EQ(read_file(folder.path("done"), 100), "--task=0/12\n--task=1/12\n--task=5/12\n");
  EXPECT_EQ(read_file(folder.path("slurm-1_5.log"), 100), "said\n");
}

TEST(Slurm, NamesMayHoldWhatShellsAndSbatchRead) {
  const TemporaryFolder folder;
  const std::string odd = folder.path("it's $HOME; %a \"100 %\"");
  fs::create_directory(odd);
  SlurmArray array = array_in(folder, {3});
  array.working_folder = odd;
  array.command.insert(array.command.end() - 1, "-- `id` $(id) 'x' \"y\"\n*");
  array.command[2] = "printf '%s|' \"$@\" > done";
  write_slurm_script(folder.path("array.sh"), array);
  EXPECT_EQ(run_sbatch(fake_sbatch(folder), "array.sh", folder.path()).exit_code, 0);
  EXPECT_EQ(read_file(odd + "/done", 100), "-- `id` $(id) 'x' \"y\"\n*|--task=3/12|");
  array.log_folder = "/a%b\"c\\d";
  EXPECT_TRUE(has_line(slurm_script(array), "#SBATCH --output=\"/a%%b\\\"c\\\\d/slurm-%A_%a.log\""));
  array.log_folder = "/runs\n#SBATCH --uid=root";
  EXPECT_NE(error_text<UsageError>([&] { slurm_script(array); }).find("which no sbatch script can name"),
            std::string::npos);
}

TEST(Slurm, ATaskIsLeftWhereAJobOfItIs) {
  const TemporaryFolder folder;
  JobList list = toy_jobs(7);
  const JobStore store(folder.path("run"), testing::kToyJobs);
  EXPECT_EQ(slurm_array(list, store, 1000).count, 7) << "no more tasks than jobs";
  // Three tasks: jobs 0, 3, 6; 1, 4; 2, 5.
  store.finish(list.settings[1], {1, 60});
  EXPECT_EQ(slurm_array(list, store, 3).tasks, (std::vector<int64_t>{0, 1, 2}));
  store.finish(list.settings[4], {1, 60});
  const SlurmArray array = slurm_array(list, store, 3);
  EXPECT_EQ(array.tasks, (std::vector<int64_t>{0, 2}));
  EXPECT_DOUBLE_EQ(*array.seconds, 180) << "three jobs of a minute";
  for (const Json& job : list.settings) store.finish(job, {1, 60});
  EXPECT_EQ(error_text([&] { slurm_array(list, store, 3); }), "all 7 jobs of toy are done; there is nothing to submit");
}

TEST(Slurm, OtherFilesAreNotOverwritten) {
  const TemporaryFolder folder;
  const std::string thesis = folder.write("thesis.tex", "x");
  EXPECT_NE(error_text([&] { write_slurm_script(thesis, array_in(folder, {0})); }).find("not a script that sparsight"),
            std::string::npos);
  EXPECT_EQ(read_file(thesis, 10), "x");
  EXPECT_NE(error_text([&] { write_slurm_script(folder.path(), array_in(folder, {0})); }).find("is not a script"),
            std::string::npos);
  write_slurm_script(folder.path("array.sh"), array_in(folder, {0}));
  write_slurm_script(folder.path("array.sh"), array_in(folder, {1}));
  EXPECT_TRUE(has_line(read_file(folder.path("array.sh"), 10000), "#SBATCH --array=1"));
  EXPECT_NE(error_text([&] { write_slurm_script("/no/such/folder/a.sh", array_in(folder, {0})); }).find("/no/such"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::slurm_test
