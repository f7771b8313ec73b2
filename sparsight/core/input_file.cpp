#include "sparsight/core/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// Opening a pipe without O_NONBLOCK waits for its writer.
Descriptor open_regular(const std::string& path, const std::string& action, bool pipes_too) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  const bool special = file.get() < 0 && errno == ENXIO;  // a socket, or a device without hardware
  if (!special && (file.get() < 0 || fstat(file.get(), &status) != 0)) fail_system(action, path, errno);
  if (S_ISDIR(status.st_mode)) fail("cannot ", action, " ", printable(path), ": it is a folder; name a file in it");
  if (special || !(S_ISREG(status.st_mode) || (pipes_too && S_ISFIFO(status.st_mode))))
    fail("cannot ", action, " ", printable(path),
         ": it is a device, a pipe or a socket, not a regular file; copy what it delivers into a file and name that");
  return file;
}

// Waits until the pipe has bytes, or its writers have closed it.
void wait_for_bytes(const Descriptor& pipe, const std::string& path, const std::string& action, double seconds) {
  pollfd wanted{pipe.get(), POLLIN, 0};
  int ready = 0;
  do ready = poll(&wanted, 1, static_cast<int>(seconds * 1000));
  while (ready < 0 && errno == EINTR);
  if (ready == 0)
    fail("cannot ", action, " ", printable(path), ": nothing came through the pipe for ", seconds,
         " seconds; write it to a file and name that");
}

std::string read_to_the_end(const Descriptor& file, const std::string& path, size_t max_bytes,
                            const std::string& action, double max_wait_seconds) {
  std::string bytes;
  std::vector<char> chunk(1 << 16);
  while (true) {
    const ssize_t got = read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      wait_for_bytes(file, path, action, max_wait_seconds);
      continue;
    }
    if (got < 0) fail_system(action, path, errno);
    if (got == 0) return bytes;
    bytes.append(chunk.data(), static_cast<size_t>(got));
    if (bytes.size() > max_bytes)
      fail("cannot ", action, " ", printable(path), ": it is larger than the ", max_bytes, " bytes allowed");
  }
}

}  // namespace

void fail_system(const std::string& action, const std::string& path, int error_number) {
  std::string advice;
  switch (error_number) {
    case ENOENT:
      advice = "; check the path";
      break;
    case EACCES:
    case EPERM:
      advice = "; change the permissions or choose another path";
      break;
    case EROFS:
      advice = "; choose a path on a writable disk";
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      advice = "; free some space or choose another path";
      break;
    default:
      break;
  }
  fail("cannot ", action, " ", printable(path), ": ", std::strerror(error_number), advice);
}

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

int Descriptor::release() { return std::exchange(value_, -1); }

Descriptor open_for_reading(const std::string& path, const std::string& action) {
  return open_regular(path, action, /*pipes_too=*/false);
}

size_t size_of_file(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_system("read", path, errno);
  return static_cast<size_t>(status.st_size);
}

void read_all_at(int descriptor, void* data, size_t bytes, size_t offset, const std::string& path) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor, next, std::min<size_t>(bytes, 1 << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system("read", path, errno);
    if (got == 0) fail("cannot read ", path, ": it ends ", bytes, " bytes early; it was cut while being read");
    next += got;
    offset += static_cast<size_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

std::string read_file(const std::string& path, size_t max_bytes, const std::string& action) {
  return read_to_the_end(open_regular(path, action, /*pipes_too=*/false), path, max_bytes, action, 0);
}

std::string read_file_or_pipe(const std::string& path, size_t max_bytes, const std::string& action,
                              double max_wait_seconds) {
  const Descriptor file = open_regular(path, action, /*pipes_too=*/true);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_system(action, path, errno);
  std::string bytes = read_to_the_end(file, path, max_bytes, action, max_wait_seconds);
  if (bytes.empty() && S_ISFIFO(status.st_mode))
    fail("cannot ", action, " ", printable(path), ": it is a pipe that nothing comes through");
  return bytes;
}

}  // namespace sparsight
