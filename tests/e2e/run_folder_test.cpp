// Training to a disk that is full, read-only or limited: one clear line, exit code 1, no incomplete files.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/io/atomic_file.h"
#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/small_disk.h"

namespace sparsight::testing::run_folder_test {
namespace {

namespace fs = std::filesystem;

void expect_run_failure(const ProgramResult& result, const std::string& part) {
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("error: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

void expect_nothing_half_written(const std::string& run) {
  EXPECT_FALSE(fs::exists(run + "/done"));
  EXPECT_TRUE(fs::is_empty(run + "/checkpoints"));
  for (const auto& entry : fs::recursive_directory_iterator(run)) EXPECT_NE(entry.path().extension(), ".tmp");
}

TEST(RunFolderProgram, AFullDiskEndsTheRun) {
  const TemporaryFolder folder;
  const SmallDisk disk("size=100k");
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const std::string run = disk.folder().path("run");
  expect_run_failure(run_program({"train", tiny_config(folder), "--out", run}),
                     "No space left on device; free some space");
  expect_nothing_half_written(run);
}

TEST(RunFolderProgram, AReadOnlyDiskEndsTheRun) {
  const TemporaryFolder folder;
  SmallDisk disk;
  if (!disk.mounted() || !disk.make_read_only()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  expect_run_failure(run_program({"train", tiny_config(folder), "--out", disk.folder().path("run")}),
                     "Read-only file system; choose a path on a writable disk");
}

// The limit ulimit -f sets (20 kB here) sends a signal that ends a program that does not expect it.
TEST(RunFolderProgram, ALimitOnFileSizesEndsTheRun) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  Program program(
      {"-c", "ulimit -f 40; exec \"$0\" \"$@\"", test::program_path(), "train", tiny_config(folder), "--out", run}, {},
      "/bin/sh");
  expect_run_failure(program.wait(), "File too large; free some space");
  expect_nothing_half_written(run);
}

// Without descriptors 0 to 2 the next open file would get their numbers, and with them what is printed.
TEST(RunFolderProgram, ClosedStandardDescriptorsHarmNoFile) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  for (const char* closed : {"<&- >&- 2>&-", ">&- 2>&-", "2>&-", "<&- 2>&-"}) {
    Program program({"-c", std::string("exec \"$0\" \"$@\" ") + closed, test::program_path(), "train",
                     tiny_config(folder), "--out", run, "--overwrite", "--set", "train.epochs=1"},
                    {}, "/bin/sh");
    EXPECT_EQ(program.wait().exit_code, 0) << closed;
    EXPECT_TRUE(fs::exists(run + "/done")) << closed;
    EXPECT_FALSE(json_lines(read_file(run + "/metrics.jsonl", 1 << 20)).empty()) << closed;
    EXPECT_EQ(read_file(run + "/config.toml", 1 << 20).rfind("[run]", 0), 0u) << closed;
  }
}

TEST(RunFolderProgram, AFileInTheWayIsNotTouched) {
  const TemporaryFolder folder;
  const std::string file = folder.write("run", "mine");
  expect_run_failure(run_program({"train", tiny_config(folder), "--out", file, "--overwrite"}),
                     "is a file; choose another");
  EXPECT_EQ(fs::file_size(file), 4u);
}

}  // namespace
}  // namespace sparsight::testing::run_folder_test
