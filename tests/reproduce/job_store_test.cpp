#include "sparsight/reproduce/job_store.h"

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
using testing::message_of;
using testing::TemporaryFolder;

const SweepIdentity kIdentity{"toy/line", "smoke", ""};
const Json kJob = {{"x", 1}, {"seed", 0}};

// The only file of jobs/ with this ending.
std::string only_file(const std::string& folder, const std::string& ending) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder + "/jobs"))
    if (const std::string path = entry.path(); path.ends_with(ending)) found = path;
  return found;
}

TEST(JobStore, AJobIsDoneOnce) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kIdentity);
  EXPECT_FALSE(store.read(kJob));
  {
    const auto lock = store.claim(kJob);
    ASSERT_TRUE(lock);
    EXPECT_TRUE(store.is_claimed(kJob));
    EXPECT_FALSE(store.claim(kJob)) << "somebody is at it";
    store.finish(kJob, {{{"y", 0.1}}, 1.5});
  }
  EXPECT_TRUE(store.is_done(kJob));
  EXPECT_FALSE(store.claim(kJob)) << "it is done";
  const auto done = JobStore(folder.path("run"), kIdentity).read(kJob);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, Json({{"y", 0.1}}));
  EXPECT_EQ(done->seconds, 1.5);
  EXPECT_FALSE(store.is_done({{"x", 1}, {"seed", 1}}));
  EXPECT_EQ(only_file(folder.path("run"), ".lock"), "");
}

TEST(JobStore, DamagedFilesAreDoneAgain) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kIdentity);
  store.finish(kJob, {{{"y", 1}}, 1});
  const std::string file = only_file(folder.path("run"), ".json"), whole = read_file(file, 1 << 20);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string(1000, '['),
        std::string("{\"settings\": {\"x\": 2}, \"result\": {}, \"seconds\": 1}"),
        std::string("{\"settings\": {\"x\": 1, \"seed\": 0}, \"result\": 3, \"seconds\": 1}")}) {
    write_file_atomically(file, damaged);
    EXPECT_FALSE(store.read(kJob)) << damaged;
    EXPECT_FALSE(store.is_done(kJob)) << damaged;
  }
  fs::create_directory(file);
  EXPECT_FALSE(store.read(kJob));
  EXPECT_TRUE(store.claim(kJob));
}

TEST(JobStore, WhatAKilledProcessLeftIsTakenOver) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kIdentity);
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
  std::string remains = only_file(folder.path("run"), ".lock");
  remains.replace(remains.size() - 5, 5, ".json.77-0.tmp");
  write_file_atomically(remains, "half");
  ASSERT_TRUE(store.claim(kJob));
  EXPECT_FALSE(fs::exists(remains));
}

TEST(JobStore, FailuresAreToldAndForgotten) {
  const TemporaryFolder folder;
  const JobStore store(folder.path("run"), kIdentity);
  EXPECT_FALSE(store.failure(kJob));
  store.record_failure(kJob, "no such\nfile");
  EXPECT_TRUE(store.has_failed(kJob));
  EXPECT_EQ(store.failure(kJob), "no such\\x0afile");
  EXPECT_FALSE(store.is_done(kJob));
  write_file_atomically(only_file(folder.path("run"), ".failed.json"), "{");
  EXPECT_EQ(store.failure(kJob), "for a reason that cannot be read any more");
  store.forget_failure(kJob);
  EXPECT_FALSE(store.has_failed(kJob));
}

TEST(JobStore, OtherFoldersAreRefused) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  { const JobStore store(run, kIdentity); }
  const auto message = [&](const SweepIdentity& identity, const std::string& path) {
    return message_of([&] { JobStore(path, identity); });
  };
  EXPECT_EQ(message({"toy/line", "paper", ""}, run), run +
                                                         " holds toy/line at scale smoke, real data, not toy/line at "
                                                         "scale paper, real data; choose another folder with --run");
  EXPECT_NE(message({"toy/line", "smoke", "glyphs"}, run).find("not toy/line at scale smoke, stand-in data (glyphs)"),
            std::string::npos);
  EXPECT_NE(message({"toy/other", "smoke", ""}, run).find("not toy/other"), std::string::npos);
  folder.write("run/figure.json", "{\"format\": 7, \"figure\": \"toy/line\"}");
  EXPECT_NE(message(kIdentity, run).find("is of format 7, and this version of sparsight reads 1"), std::string::npos);
  folder.write("run/figure.json", "nonsense");
  EXPECT_NE(message(kIdentity, run).find("figure.json is damaged"), std::string::npos);
  folder.write("mine/thesis.txt", "x");
  EXPECT_NE(message(kIdentity, folder.path("mine")).find("holds files that are no figure's"), std::string::npos);
  EXPECT_NE(message(kIdentity, folder.path("mine/thesis.txt")).find("is a file; choose another name"),
            std::string::npos);
}

TEST(JobStore, SaysWhatIsWrongWithTheDisk) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const JobStore store(disk.folder().path("run"), kIdentity);
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_NE(message_of([&] { store.claim(kJob); }).find("Read-only file system"), std::string::npos);
  EXPECT_NE(message_of([&] { JobStore(disk.folder().path("other"), kIdentity); }).find("Read-only file system"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::job_store_test
