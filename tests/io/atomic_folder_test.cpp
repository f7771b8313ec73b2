#include "sparsight/io/atomic_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::atomic_folder_test {
namespace {

void fill(const AtomicFolder& folder) { write_file_atomically(folder.aside() + "/a", "x"); }

}  // namespace

TEST(AtomicFolder, AppearsOnlyAtCommit) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("parent/made");
  {
    AtomicFolder made(path + "/");
    fill(made);
    EXPECT_FALSE(std::filesystem::exists(path));
    made.commit();
  }
  EXPECT_EQ(read_file(path + "/a", 10), "x");
  { fill(AtomicFolder(folder.path("parent/not_kept"))); }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path("parent")), {}), 1);
}

TEST(AtomicFolder, TakesNoPathWithSomethingAtIt) {
  const testing::TemporaryFolder folder;
  folder.write("file", "x");
  for (const std::string& path : {folder.path(), folder.path("file"), folder.path("file/"), std::string("/")})
    EXPECT_EQ(testing::error_text([&] { AtomicFolder made(path); }),
              path + " exists already; choose another folder or remove it");
  EXPECT_NE(testing::error_text([&] { AtomicFolder made(""); }).find("has no name"), std::string::npos);
  EXPECT_NE(testing::error_text([&] { AtomicFolder made(folder.path("file/a")); }).find("Not a directory"),
            std::string::npos);
  EXPECT_EQ(testing::count_entries(folder), 1u);
}

TEST(AtomicFolder, RemovesWhatAKilledProcessLeft) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("made");
  folder.write("made.1-2.tmp/train/a.png", "half");
  folder.write("made.tmp/notes.txt", "mine");
  AtomicFolder first(path);
  EXPECT_FALSE(std::filesystem::exists(path + ".1-2.tmp"));
  AtomicFolder second(path);  // as of another process
  fill(first), fill(second);
  first.commit();
  EXPECT_NE(testing::error_text([&] { second.commit(); }).find("cannot make the folder"), std::string::npos);
  EXPECT_EQ(read_file(path + "/a", 10), "x");
  EXPECT_EQ(read_file(folder.path("made.tmp/notes.txt"), 10), "mine");
}

TEST(AtomicFolder, FollowsALinkToAnotherDisk) {
  const testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const testing::TemporaryFolder folder;
  const std::string link = folder.path("link"), target = disk.folder().path("target");
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  AtomicFolder made(link);
  fill(made);
  made.commit();
  EXPECT_EQ(read_file(target + "/a", 10), "x");
  EXPECT_EQ(testing::count_entries(folder), 1u);
}

}  // namespace sparsight::atomic_folder_test
