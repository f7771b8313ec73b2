#include "sparsight/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "sparsight/core/error.h"
#include "tests/io/small_disk.h"

namespace sparsight {

constexpr size_t kLimit = 1 << 20;

TEST(AtomicFile, AppearsOnlyAtCommit) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_file(path, kLimit), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(path, kLimit), "new");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  { AtomicFile(folder / "a.txt").write("half"); }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, SaysWhatIsWrongWithTheFolder) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of<Error>([&] { write_file_atomically(folder / "missing/a.txt", "x"); }).find("No such file"),
            std::string::npos);
}

TEST(AtomicFile, AFullDiskKeepsTheEarlierFile) {
  SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const std::string path = disk.folder() / "a.bin";
  write_file_atomically(path, "old");
  const std::string message = error_of<Error>([&] { write_file_atomically(path, std::string(2 << 20, 'x')); });
  EXPECT_NE(message.find("No space left on device; free some space"), std::string::npos) << message;
  EXPECT_EQ(read_file(path, kLimit), "old");
  EXPECT_EQ(disk.folder().entries(), 1u);
  ASSERT_TRUE(disk.make_read_only());
  const std::string read_only = error_of<Error>([&] { write_file_atomically(path, "x"); });
  EXPECT_NE(read_only.find("Read-only file system"), std::string::npos) << read_only;
}

TEST(AtomicFile, ASizeLimitOfTheProcessIsAnError) {
  const TemporaryFolder folder;
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error_of<Error>([&] { write_file_atomically(folder / "a", std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(ReadFile, RefusesFoldersMissingFilesAndFilesOverTheLimit) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_NE(error_of<Error>([&] { read_file(path, 4); }).find("larger than the 4 bytes"), std::string::npos);
  EXPECT_NE(error_of<Error>([&] { read_file(folder.path(), 4); }).find("is a folder"), std::string::npos);
  EXPECT_NE(error_of<Error>([&] { read_file(folder / "b", 4); }).find("No such file"), std::string::npos);
}

}  // namespace sparsight
