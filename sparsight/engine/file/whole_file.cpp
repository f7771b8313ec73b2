#include "sparsight/engine/file/whole_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "sparsight/core/input_file.h"

namespace sparsight::engine {
namespace {

// Takes the lock that says that this file is being written. False where another process has it, and where `path` does
// not name the file any more; true on a disk without locks.
bool lock_named(const Descriptor& file, const std::string& path) {
  if (file.get() < 0 || (flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) return false;
  struct stat held {
  }, named{};
  return fstat(file.get(), &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// A new file with its lock, or none where another process has it.
Descriptor create_locked(const std::string& path, mode_t mode) {
  for (int tries = 0; tries < 2; ++tries) {
    Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() >= 0) return lock_named(file, path) ? std::move(file) : Descriptor();
    if (errno != EEXIST) fail_system("write", path, errno);
    // Its writer is at work, or was killed: then its lock is free.
    const Descriptor left(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!lock_named(left, path)) break;
    unlink(path.c_str());
  }
  return Descriptor();
}

void write_at_end(const Descriptor& file, const void* bytes, size_t count, const std::string& path) {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = write(file.get(), next, std::min<size_t>(count, 1 << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system("write", path, errno);
    next += written, count -= static_cast<size_t>(written);
  }
}

}  // namespace

bool write_whole_file(const std::string& path, const std::string& like, FunctionRef<void(WriteBytes write)> fill) {
  const std::string temporary = path + ".tmp";
  struct stat status {};
  const bool secret = stat(like.c_str(), &status) != 0 || (status.st_mode & S_IROTH) == 0;
  const Descriptor file = create_locked(temporary, secret ? 0400 : 0444);
  if (file.get() < 0) return false;
  try {
    fill([&](const void* bytes, size_t count) { write_at_end(file, bytes, count, path); });
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail_system("write", path, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  return true;
}

}  // namespace sparsight::engine
