#include "sparsight/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::atomic_file_test {

constexpr size_t kLimit = 1 << 20;

TEST(AtomicFile, AppearsOnlyAtCommit) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a.txt");
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_file(path, kLimit), "old");
    file.commit();
  }
  EXPECT_EQ(read_file(path, kLimit), "new");
  EXPECT_EQ(testing::count_entries(folder), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const testing::TemporaryFolder folder;
  { AtomicFile(folder.path("a.txt")).write("half"); }
  EXPECT_EQ(testing::count_entries(folder), 0u);
}

TEST(AtomicFile, KeepsAFileOfTheSameBytesAndRefusesToReplaceAnother) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a.txt"), large(3 << 20, 'x');
  const auto write = [&](const std::string& text) {
    AtomicFile file(path, Existing::keep_equal);
    file.write(text);
    file.commit();
  };
  write(large);
  const auto written = std::filesystem::last_write_time(path);
  write(large);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
  std::string last_differs = large;
  last_differs.back() = 'y';
  for (const std::string& other : {last_differs, large + "x", std::string()})
    EXPECT_NE(testing::error_text([&] { write(other); }).find("exists already with other content"), std::string::npos);
  EXPECT_EQ(read_file(path, size_t{8} << 20), large);
  EXPECT_EQ(testing::count_entries(folder), 1u);
}

TEST(AtomicFile, WritesWhereALinkPointsAndOverNoDevice) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder.path("there.txt"), "old");
  ASSERT_EQ(symlink("there.txt", folder.path("link.txt").c_str()), 0);
  write_file_atomically(folder.path("link.txt"), "new");
  EXPECT_EQ(read_file(folder.path("there.txt"), kLimit), "new");
  EXPECT_EQ(testing::count_entries(folder), 2u);
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(testing::error_text([&] { write_file_atomically(folder.path("pipe"), "x"); }).find("a device, a pipe"),
            std::string::npos);
}

TEST(AtomicFile, FollowsALinkToAnotherDisk) {
  const testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const testing::TemporaryFolder folder;
  const std::string link = folder.path("link"), target = disk.folder().path("target");
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  for (const char* text : {"made", "replaced"}) {
    write_file_atomically(link, text);
    EXPECT_EQ(read_file(target, kLimit), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(testing::count_entries(folder), 1u);
  EXPECT_EQ(testing::count_entries(disk.folder()), 1u);
}

TEST(AtomicFile, MakesWhatALinkLeadsTo) {
  const testing::TemporaryFolder folder;
  folder.write("below/there", "x");
  ASSERT_EQ(symlink("below/second", folder.path("first").c_str()), 0);
  ASSERT_EQ(symlink("third", folder.path("below/second").c_str()), 0);
  write_file_atomically(folder.path("first"), "new");
  EXPECT_EQ(read_file(folder.path("below/third"), kLimit), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("below/second")));

  ASSERT_EQ(symlink("missing/file", folder.path("nowhere").c_str()), 0);
  EXPECT_EQ(testing::error_text([&] { write_file_atomically(folder.path("nowhere"), "x"); }),
            "cannot write " + folder.path("nowhere") + " (a link to " + folder.path("missing/file") +
                "): No such file or directory; check the path");
}

TEST(AtomicFile, LinksInACircleAreAnError) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(symlink("b", folder.path("a").c_str()), 0);
  ASSERT_EQ(symlink("a", folder.path("b").c_str()), 0);
  EXPECT_EQ(
      testing::error_text([&] { write_file_atomically(folder.path("a"), "x"); }),
      "cannot write " + folder.path("a") + ": its links lead in a circle; remove the link or choose another path");
  EXPECT_EQ(testing::count_entries(folder), 2u);
}

TEST(AtomicFile, RemovesWhatAKilledProcessLeft) {
  const testing::TemporaryFolder folder;
  for (const char* mine : {"a.txt.1-2.tmp.txt", "a.txt.tmp", "b.txt.1-2.tmp"}) folder.write(mine, "mine");
  const std::string stale = folder.write("a.txt.1-2.tmp", "half");
  AtomicFile other(folder.path("a.txt"));
  EXPECT_FALSE(std::filesystem::exists(stale));
  write_file_atomically(folder.path("a.txt"), "new");
  EXPECT_EQ(testing::count_entries(folder), 5u) << "the other file is still being written";
  other.commit();
  EXPECT_EQ(read_file(folder.path("a.txt"), kLimit), "");
}

TEST(AtomicFile, SaysWhatIsWrongWithTheFolder) {
  const testing::TemporaryFolder folder;
  EXPECT_NE(testing::error_text([&] { write_file_atomically(folder.path("missing/a.txt"), "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(testing::error_text([&] { AtomicFile file(folder.path()); }),
            "cannot write " + folder.path() + ": it is a folder; name a file in it");
}

TEST(AtomicFile, AFullDiskKeepsTheEarlierFile) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const std::string path = disk.folder().path("a.bin");
  write_file_atomically(path, "old");
  const std::string message = testing::error_text([&] { write_file_atomically(path, std::string(2 << 20, 'x')); });
  EXPECT_NE(message.find("No space left on device; free some space"), std::string::npos) << message;
  EXPECT_EQ(read_file(path, kLimit), "old");
  EXPECT_EQ(testing::count_entries(disk.folder()), 1u);
  ASSERT_TRUE(disk.make_read_only());
  const std::string read_only = testing::error_text([&] { write_file_atomically(path, "x"); });
  EXPECT_NE(read_only.find("Read-only file system"), std::string::npos) << read_only;
}

TEST(AtomicFile, ASizeLimitOfTheProcessIsAnError) {
  const testing::TemporaryFolder folder;
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message =
      testing::error_text([&] { write_file_atomically(folder.path("a"), std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(testing::count_entries(folder), 0u);
}

TEST(ReadFile, RefusesFoldersMissingFilesAndFilesOverTheLimit) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("a", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_NE(testing::error_text([&] { read_file(path, 4); }).find("larger than the 4 bytes"), std::string::npos);
  EXPECT_NE(testing::error_text([&] { read_file(folder.path(), 4); }).find("is a folder"), std::string::npos);
  EXPECT_NE(testing::error_text([&] { read_file(folder.path("b"), 4); }).find("No such file"), std::string::npos);
}

}  // namespace sparsight::atomic_file_test
