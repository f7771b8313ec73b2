#include "sparsight/io/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::file_lock_test {

using testing::message_of;
using testing::TemporaryFolder;

TEST(FileLock, OneAtATimeAndNoFileAfterwards) {
  const TemporaryFolder folder;
  const std::string path = folder.path("job.lock");
  {
    auto lock = FileLock::try_take(path);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(lock->was_left_behind());
    EXPECT_FALSE(FileLock::try_take(path));
    EXPECT_TRUE(FileLock::is_held(path));
    lock->write("123456");
    lock->write("12");
    EXPECT_EQ(std::filesystem::file_size(path), 2u);
  }
  EXPECT_FALSE(FileLock::is_held(path));
  EXPECT_EQ(testing::count_entries(folder), 0u);
}

TEST(FileLock, GoesWithTheProcess) {
  const TemporaryFolder folder;
  const std::string path = folder.path("job.lock");
  const pid_t other = fork();
  if (other == 0) {
    const auto lock = FileLock::try_take(path);
    _exit(lock ? 0 : 1);  // without the destructor, as when killed
  }
  int status = 0;
  waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  const auto lock = FileLock::try_take(path);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->was_left_behind());
}

TEST(FileLock, SaysWhyItCannotBeMade) {
  const TemporaryFolder folder;
  EXPECT_NE(message_of([&] { FileLock::try_take(folder.path("none/job.lock")); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(message_of([&] { wait_for_folder(folder.path("none")); }).find("No such file"), std::string::npos);
}

}  // namespace sparsight::file_lock_test
