#include "sparsight/io/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::run_folder_test {
namespace {

void begin_run(const std::string& path) {
  const RunFolder run = RunFolder::create(path);
  write_file_atomically(run.env(), describe_environment().dump());
  write_file_atomically(run.config(), "[train]\n");
}

void begin_and_train(const std::string& path) {
  begin_run(path);
  write_file_atomically(RunFolder::open(path).metrics(), "{}\n");
}

void expect_error(const std::string& path, IfExists if_exists, const std::string& part) {
  const std::string message = testing::error_text([&] { RunFolder::create(path, if_exists); });
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace

TEST(RunFolder, IsMadeWithItsParentsAndInAnEmptyFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(std::filesystem::is_directory(RunFolder::create(folder.path("a/b")).path() + "/checkpoints"));
  std::filesystem::create_directory(folder.path("empty"));
  RunFolder::create(folder.path("empty"));
}

TEST(RunFolder, AnExistingRunIsKeptUnlessToldOtherwise) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run");
  begin_and_train(path);
  expect_error(path, IfExists::kRefuse, "exists already; go on with --resume, replace it with --overwrite");
  {
    const RunFolder run = RunFolder::create(path, IfExists::kResume);
    EXPECT_EQ(read_file(run.config(), 100), "[train]\n");
    run.mark_done();
    EXPECT_TRUE(run.is_done());
    write_file_atomically(run.checkpoint("last"), "x");
    EXPECT_TRUE(run.has_checkpoint("last"));
  }
  folder.write("run/notes.txt", "mine");
  const RunFolder run = RunFolder::create(path, IfExists::kOverwrite);
  EXPECT_FALSE(run.is_done());
  EXPECT_FALSE(run.has_checkpoint("last"));
  EXPECT_FALSE(std::filesystem::exists(run.config()));
  EXPECT_TRUE(std::filesystem::exists(path + "/notes.txt"));
}

TEST(RunFolder, ARunThatEndedBeforeItsFirstStepMayBeReplaced) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run");
  begin_run(path);
  folder.write("run/metrics.jsonl", "");
  folder.write("run/notes.txt", "mine");
  {
    const RunFolder run = RunFolder::create(path);
    EXPECT_FALSE(std::filesystem::exists(run.config()));
    EXPECT_FALSE(std::filesystem::exists(run.metrics()));
    EXPECT_EQ(read_file(path + "/notes.txt", 10), "mine");
    begin_run(folder.path("other"));
    expect_error(path, IfExists::kRefuse, "do not belong to a run");  // there is no env.json
    write_file_atomically(run.env(), describe_environment().dump());
    expect_error(path, IfExists::kRefuse, "another process is writing");
  }
  // Anything that was trained is kept.
  for (const std::string name : {"checkpoints/last.safetensors", "checkpoints/best.safetensors", "metrics.jsonl"}) {
    begin_run(folder.path(name));
    folder.write(name + "/" + name, "x");
    expect_error(folder.path(name), IfExists::kRefuse, "exists already");
  }
}

TEST(RunFolder, WhatAProcessLeftThatWasKilledAtItsBeginningIsTaken) {
  for (const IfExists if_exists : {IfExists::kRefuse, IfExists::kOverwrite}) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.path("run");
    std::filesystem::create_directories(path + "/checkpoints");
    folder.write("run/env.json.12-0.tmp", "{");
    RunFolder::create(path, if_exists);
    folder.write("run/env.json", describe_environment().dump());
    folder.write("run/config.toml.12-1.tmp", "[tr");
    RunFolder::create(path, if_exists);
    EXPECT_FALSE(std::filesystem::exists(path + "/config.toml.12-1.tmp"));
    expect_error(path, IfExists::kResume, "holds no run");
    folder.write("run/env.json", "{}");  // of another program
    expect_error(path, if_exists, "do not belong to a run");
  }
}

TEST(RunFolder, OtherFoldersAndFilesAreNotTaken) {
  const testing::TemporaryFolder folder;
  expect_error(folder.path("missing"), IfExists::kResume, "holds no run");
  folder.write("file", "x");
  expect_error(folder.path(), IfExists::kResume, "holds no run");
  expect_error(folder.path(), IfExists::kRefuse, "holds files that do not belong to a run");
  expect_error(folder.path(), IfExists::kOverwrite, "holds files that do not belong to a run");
  expect_error(folder.path("file"), IfExists::kOverwrite, "is a file");
  expect_error(folder.path("file/run"), IfExists::kRefuse, "Not a directory");
  EXPECT_NE(testing::error_text([&] { RunFolder::open(folder.path()); }).find("is not a run folder"),
            std::string::npos);
}

TEST(RunFolder, OverwritingRemovesOnlyWhatARunWrites) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("run");
  begin_run(path);
  const std::vector<std::string> foreign = {"notes.tmp", "config.toml.bak.tmp", "checkpoints/mine.safetensors",
                                            "checkpoints/last.safetensors.tmp", "last.safetensors"};
  for (const std::string& name : foreign) folder.write("run/" + name, "mine");
  folder.write("elsewhere", "mine");
  std::filesystem::create_symlink(folder.path("elsewhere"), path + "/report.html");
  RunFolder::create(path, IfExists::kOverwrite);
  for (const std::string& name : foreign) EXPECT_EQ(read_file(path + "/" + name, 10), "mine") << name;
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path + "/report.html")));
  EXPECT_EQ(read_file(folder.path("elsewhere"), 10), "mine");
}

TEST(RunFolder, AFolderWithAConfigurationAloneIsNoRun) {
  const testing::TemporaryFolder folder;
  folder.write("mine/config.toml", "[tool]\n");
  folder.write("mine/env.json", "{\"python\": 3}");
  expect_error(folder.path("mine"), IfExists::kOverwrite, "holds files that do not belong to a run");
  EXPECT_EQ(read_file(folder.path("mine/config.toml"), 100), "[tool]\n");
}

TEST(RunFolder, CheckpointsBehindALinkAreNotRemoved) {
  const testing::TemporaryFolder folder;
  begin_run(folder.path("run"));
  folder.write("other/last.safetensors", "mine");
  std::filesystem::remove(folder.path("run/checkpoints"));
  std::filesystem::create_directory_symlink(folder.path("other"), folder.path("run/checkpoints"));
  expect_error(folder.path("run"), IfExists::kOverwrite, "is a link");
  EXPECT_EQ(read_file(folder.path("other/last.safetensors"), 10), "mine");
}

TEST(RunFolder, TwoWritersDoNotMeet) {
  const testing::TemporaryFolder folder;
  begin_run(folder.path("run"));
  const RunFolder first = RunFolder::create(folder.path("run"), IfExists::kResume);
  expect_error(folder.path("run"), IfExists::kResume, "another process is writing");
  EXPECT_EQ(RunFolder::open(folder.path("run")).path(), first.path());  // readers are welcome
}

TEST(RunFolder, RemainsOfHalfWrittenFilesAreRemoved) {
  const testing::TemporaryFolder folder;
  begin_run(folder.path("run"));
  folder.write("run/checkpoints/last.safetensors.77-0.tmp", "half");
  folder.write("run/config.toml.77-1.tmp", "half");
  RunFolder::create(folder.path("run"), IfExists::kResume);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("run/checkpoints")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/config.toml.77-1.tmp")));
}

TEST(RunFolder, AReadOnlyDiskIsAnError) {
  testing::SmallDisk disk;
  if (!disk.mounted() || !disk.make_read_only()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  expect_error(disk.folder().path("run"), IfExists::kRefuse, "Read-only file system");
}

TEST(Environment, SaysWhatTheRunRanOn) {
  const Json env = describe_environment();
  for (const char* key : {"sparsight", "torch", "processor", "instruction_set", "threads", "started", "command"})
    EXPECT_TRUE(env.contains(key)) << key;
  ASSERT_FALSE(env["command"].empty());  // of the test program
  EXPECT_NE(env["command"][0].get<std::string>().find("sparsight_tests"), std::string::npos);
}

}  // namespace sparsight::run_folder_test
