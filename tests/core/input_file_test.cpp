#include "sparsight/core/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::input_file_test {
namespace {

std::string complaint(const std::string& path) {
  return testing::error_text([&] { read_file(path, 1000); });
}

// What reading the configuration at `path` gives, or its error.
std::string text_or_error(const std::string& path, double max_wait_seconds = 10) {
  try {
    return read_file_or_pipe(path, 1000, "read the configuration", max_wait_seconds);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string pipe_in(const testing::TemporaryFolder& folder) {
  std::string path = folder.path("pipe");
  EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
  return path;
}

}  // namespace

TEST(InputFile, ReadsRegularFilesAndWhatALinkLeadsTo) {
  const testing::TemporaryFolder folder;
  folder.write("a", "text");
  ASSERT_EQ(symlink("a", folder.path("link").c_str()), 0);
  EXPECT_EQ(read_file(folder.path("a"), 4), "text");
  EXPECT_EQ(read_file(folder.path("link"), 4), "text");
  EXPECT_EQ(testing::error_text([&] { read_file(folder.path("a"), 3); }),
            "cannot read " + folder.path("a") + ": it is larger than the 3 bytes allowed");
}

// Each at once: opening a pipe must not wait for a writer, and /dev/zero has no end.
TEST(InputFile, RefusesEverythingElse) {
  const testing::TemporaryFolder folder;
  const int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  std::strncpy(address.sun_path, folder.path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(unix_socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const std::string& path : {std::string("/dev/zero"), std::string("/dev/null"), std::string("/dev/tty"),
                                  pipe_in(folder), folder.path("socket")})
    EXPECT_NE(complaint(path).find("it is a device, a pipe or a socket, not a regular file"), std::string::npos)
        << path << ": " << complaint(path);
  close(unix_socket);
  EXPECT_EQ(complaint(folder.path()), "cannot read " + folder.path() + ": it is a folder; name a file in it");
  EXPECT_EQ(complaint(folder.path("none")),
            "cannot read " + folder.path("none") + ": No such file or directory; check the path");
}

TEST(InputFile, ATextMayComeThroughAPipe) {
  const testing::TemporaryFolder folder;
  const std::string pipe = pipe_in(folder);
  const int ours = open(pipe.c_str(), O_RDWR);  // so that the writer below finds a reader
  std::thread writer([&] {
    const int end = open(pipe.c_str(), O_WRONLY);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const char* part : {"one ", "two"}) EXPECT_GT(write(end, part, std::strlen(part)), 0);
    close(end);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    close(ours);
  });
  EXPECT_EQ(text_or_error(pipe), "one two");
  writer.join();
  EXPECT_EQ(text_or_error(folder.write("file", "")), "");
}

TEST(InputFile, APipeThatNothingComesThroughDoesNotHoldTheProgramUp) {
  const testing::TemporaryFolder folder;
  const std::string pipe = pipe_in(folder);
  EXPECT_EQ(text_or_error(pipe), "cannot read the configuration " + pipe + ": it is a pipe that nothing comes through");
  const int silent = open(pipe.c_str(), O_RDWR);
  EXPECT_NE(text_or_error(pipe, 0.05).find("nothing came through the pipe for 0.05 seconds"), std::string::npos);
  const std::string much(5000, 'x');
  ASSERT_EQ(write(silent, much.data(), much.size()), 5000);
  EXPECT_NE(text_or_error(pipe).find("larger than the 1000 bytes allowed"), std::string::npos);
  close(silent);
  EXPECT_NE(text_or_error("/dev/zero").find("it is a device"), std::string::npos);
}

}  // namespace sparsight::input_file_test
