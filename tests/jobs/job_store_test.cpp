#include "sparsight/jobs/job_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/small_disk.h"

namespace sparsight::job_store_test {
namespace {

namespace fs = std::filesystem;
using testing::error_text;
using testing::TemporaryFolder;

const std::string kOf = "toy/line at scale smoke, real data";
const Json kJob = {{"x", 1}, {"seed", 0}};

std::string job_file(const JobStore& store, const std::string& name) { return store.job_folder(kJob) + "/" + name; }

TEST(JobStore, AJobIsNamedByItsSettings) {
  EXPECT_EQ(job_id(kJob), job_id({{"x", 1}, {"seed", 0}}));
  EXPECT_NE(job_id(kJob), job_id({{"x", 1}, {"seed", 1}}));
  EXPECT_NE(job_id(kJob), job_id({{"seed", 0}, {"x", 1}})) << "in their order";
  EXPECT_EQ(job_id(kJob).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(job_id(kJob).size(), 16u);
}

TEST(JobStore, AJobIsDoneOnce) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  EXPECT_FALSE(store.read(kJob));
  {
    const auto lock = store.claim(kJob);
    ASSERT_TRUE(lock);
    EXPECT_TRUE(store.is_claimed(kJob));
    EXPECT_FALSE(store.claim(kJob)) << "another process has it";
    store.finish(kJob, {{{"y", 0.1}}, 1.5});
  }
  EXPECT_TRUE(store.is_done(kJob));
  EXPECT_FALSE(store.claim(kJob)) << "it is done";
  const auto done = JobStore(folder.path("run"), kOf).read(kJob);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, Json({{"y", 0.1}}));
  EXPECT_EQ(done->seconds, 1.5);
  EXPECT_FALSE(store.is_done({{"x", 1}, {"seed", 1}}));
  EXPECT_FALSE(fs::exists(job_file(store, "lock")));
  EXPECT_EQ(Json::parse(read_file(job_file(store, "settings.json"), 1 << 20)), kJob);
}

TEST(JobStore, AResultIsAnyJson) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  for (const Json& result : {Json(), Json(3), Json("text"), Json::array({1, nullptr}), Json::object()}) {
    store.finish(kJob, {result, 1});
    EXPECT_EQ(store.read(kJob)->result, result);
  }
}

TEST(JobStore, AJobKeepsItsFilesUntilItIsDoneAndAfter) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  {
    const auto lock = store.claim(kJob);
    write_file_atomically(job_file(store, "half"), "way");
  }
  const auto lock = store.claim(kJob);
  EXPECT_EQ(read_file(job_file(store, "half"), 10), "way");
  store.finish(kJob, {1, 1});
  store.tidy(kJob);
  EXPECT_EQ(read_file(job_file(store, "half"), 10), "way");
}

TEST(JobStore, DamagedFilesAreDoneAgain) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  store.finish(kJob, {{{"y", 1}}, 1});
  const std::string file = job_file(store, "result.json"), whole = read_file(file, 1 << 20);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string(1000, '['),
        std::string("{\"settings\": {\"x\": 2}, \"result\": {}, \"seconds\": 1}"),
        std::string("{\"settings\": {\"x\": 1, \"seed\": 0}, \"seconds\": 1}"),
        std::string("{\"settings\": {\"x\": 1, \"seed\": 0}, \"result\": 3, \"seconds\": \"1\"}"),
        std::string(whole).replace(whole.find("\"y\": 1"), 6, "\"y\": 3")}) {
    write_file_atomically(file, damaged);
    EXPECT_FALSE(store.read(kJob)) << damaged;
    EXPECT_FALSE(store.is_done(kJob)) << damaged;
  }
  write_file_atomically(file, "{\"settings\": {\"x\": 1, \"seed\": 0}, \"result\": 3, \"seconds\": 1}");
  EXPECT_EQ(store.read(kJob)->result, 3) << "of a version without checksums";
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(store.read(kJob));
  EXPECT_TRUE(store.claim(kJob));
}

TEST(JobStore, WhatAKilledProcessLeftIsTakenOver) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  const pid_t other = fork();
  if (other == 0) {
    const auto lock = store.claim(kJob);
    _exit(lock ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(store.is_claimed(kJob));
  EXPECT_TRUE(store.was_claimed_by(kJob, other));
  EXPECT_FALSE(store.was_claimed_by(kJob, other + 1));
  const std::string remains = job_file(store, "result.json.77-0.tmp"), kept = job_file(store, "own.json.77-0.tmp");
  for (const std::string& file : {remains, kept}) write_file_atomically(file, "half");
  ASSERT_TRUE(store.claim(kJob));
  EXPECT_FALSE(fs::exists(remains));
  EXPECT_TRUE(fs::exists(kept)) << "the job's, not the store's";
}

TEST(JobStore, FailuresAreToldAndForgotten) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  EXPECT_FALSE(store.failure(kJob));
  store.record_failure(kJob, "no such\nfile");
  EXPECT_TRUE(store.has_failed(kJob));
  EXPECT_EQ(store.failure(kJob), "no such\\x0afile");
  EXPECT_FALSE(store.is_done(kJob));
  write_file_atomically(job_file(store, "failed.json"), "{");
  EXPECT_EQ(store.failure(kJob), "the recorded error cannot be read");
  store.forget_failure(kJob);
  EXPECT_FALSE(store.has_failed(kJob));
}

TEST(JobStore, OtherFoldersAreRefused) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  { const JobStore store(run, kOf); }
  const auto message = [&](const std::string& of, const std::string& path) {
    const std::string said = error_text([&] { JobStore(path, of); });
    EXPECT_EQ(error_text([&] { JobStore::open(path, of); }), said) << "to look at it is as wrong";
    return said;
  };
  EXPECT_EQ(message("toy/line at scale paper, real data", run),
            run +
                " holds toy/line at scale smoke, real data, not toy/line at scale paper, real data; choose another "
                "folder with --run");
  folder.write("run/jobs.json", "{\"format\": 7, \"of\": \"toy/line\"}");
  EXPECT_NE(message(kOf, run).find("is of format 7, and this version of sparsight reads 1"), std::string::npos);
  folder.write("run/jobs.json", "nonsense");
  EXPECT_NE(message(kOf, run).find("jobs.json is damaged"), std::string::npos);
  folder.write("mine/thesis.txt", "x");
  EXPECT_NE(message(kOf, folder.path("mine")).find("holds files that do not belong to jobs"), std::string::npos);
  EXPECT_NE(message(kOf, folder.path("mine/thesis.txt")).find("is a file; choose another name"), std::string::npos);
}

TEST(JobStore, LookingMakesNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(JobStore::open(folder.path("run"), kOf));
  EXPECT_FALSE(fs::exists(folder.path("run")));
  fs::create_directory(folder.path("run"));
  EXPECT_FALSE(JobStore::open(folder.path("run"), kOf));
  EXPECT_TRUE(fs::is_empty(folder.path("run")));
  JobStore(folder.path("run"), kOf).finish(kJob, {1, 1});
  EXPECT_TRUE(JobStore::open(folder.path("run"), kOf)->is_done(kJob));
}

// A file where a job's folder should be ends the run with one line, and is left unchanged.
TEST(JobStore, AFileInsteadOfAJobsFolderIsAnError) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kOf);
  folder.write("run/jobs/" + job_id(kJob), "mine");
  EXPECT_FALSE(store.is_done(kJob));
  EXPECT_NE(error_text([&] { store.claim(kJob); }).find("cannot make the folder"), std::string::npos);
  EXPECT_EQ(read_file(store.job_folder(kJob), 10), "mine");
}

TEST(JobStore, SaysWhatIsWrongWithTheDisk) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const JobStore store(disk.folder().path("run"), kOf);
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_NE(error_text([&] { store.claim(kJob); }).find("Read-only file system"), std::string::npos);
  EXPECT_NE(error_text([&] { JobStore(disk.folder().path("other"), kOf); }).find("Read-only file system"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::job_store_test
