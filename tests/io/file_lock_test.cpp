#include "sparsight/io/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "sparsight/core/interrupt.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::file_lock_test {

using testing::error_text;
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
  EXPECT_NE(error_text([&] { FileLock::try_take(folder.path("none/job.lock")); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(error_text([&] { wait_for_folder(folder.path("none")); }).find("No such file"), std::string::npos);
}

// Nothing but a file of its own is opened for writing, and nothing is waited for.
TEST(FileLock, RefusesWhatIsNoFileOfItsOwn) {
  const TemporaryFolder folder;
  const std::string target = folder.write("target", "precious"), path = folder.path("job.lock");
  const auto refuse = [&](const char* what) {
    EXPECT_NE(error_text([&] { FileLock::try_take(path); }).find("is a link, a folder, a pipe"), std::string::npos)
        << what;
    EXPECT_FALSE(FileLock::is_held(path)) << what;
    EXPECT_EQ(read_file(target, 100), "precious") << what;
    std::filesystem::remove(path);
  };
  std::filesystem::create_symlink(target, path);
  refuse("a link to a file");
  std::filesystem::create_symlink(folder.path("absent"), path);
  refuse("a link to nothing");
  EXPECT_FALSE(std::filesystem::exists(folder.path("absent")));
  std::filesystem::create_hard_link(target, path);
  refuse("a second name of a file");
  std::filesystem::create_directory(path);
  refuse("a folder");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  refuse("a pipe");
  EXPECT_TRUE(FileLock::try_take(path));
}

// A process with the program's handler, whose wait must end although the holder goes on holding.
TEST(FileLock, WaitingForAFolderEndsOnASignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    const Descriptor held = wait_for_folder(folder.path());
    const pid_t waiting = fork();
    if (waiting == 0) {
      alarm(20);  // the test fails instead of waiting for ever
      close(STDERR_FILENO);
      install_interrupt_handler();
      kill(getpid(), signal);
      _exit(error_text([&] { wait_for_folder(folder.path()); }).starts_with("interrupted") ? 42 : 1);
    }
    int status = 0;
    waitpid(waiting, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  }
}

}  // namespace sparsight::file_lock_test
