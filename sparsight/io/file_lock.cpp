#include "sparsight/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/output_file.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(50);

// An open lock file cannot be a link, whose target would be overwritten, nor a pipe, whose other end nobody holds.
constexpr int kOpenFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// A file of two names is a link too: writing to it changes what the other name leads to.
bool is_lock_file(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
}

[[noreturn]] void fail_foreign(const std::string& path) {
  fail("cannot use ", printable(path),
       " as a lock: it is a link, a folder, a pipe or a device, not a file of its own; ",
       "remove it and run the same command again");
}

// What stands at the path already; -1 where it was removed in between.
int open_existing(const std::string& path) {
  const int value = open(path.c_str(), O_RDWR | kOpenFlags);
  if (value >= 0 || errno == ENOENT) return value;
  if (errno == ELOOP || errno == EISDIR || errno == ENXIO) fail_foreign(path);
  fail_system("write", path, errno);
}

}  // namespace

std::optional<FileLock> FileLock::try_take(const std::string& path) {
  while (true) {
    int value = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool existed = value < 0 && errno == EEXIST;
    if (value < 0 && !existed) fail_system("write", path, errno);
    if (existed && (value = open_existing(path)) < 0) continue;
    Descriptor file(value);
    if (!is_lock_file(value)) fail_foreign(path);
    if (flock(value, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
    // Between the two calls the holder may have released the lock and removed this file: then this lock is worthless.
    if (is_same_file(value, path)) return FileLock(path, std::move(file), existed);
  }
}

bool FileLock::is_held(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | kOpenFlags));
  return file.get() >= 0 && is_lock_file(file.get()) && flock(file.get(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

FileLock::~FileLock() {
  if (file_.get() >= 0) unlink(path_.c_str());
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), left_behind_(other.left_behind_) {}

void FileLock::write(const std::string& text) {
  if (ftruncate(file_.get(), 0) != 0 || lseek(file_.get(), 0, SEEK_SET) != 0) fail_system("write", path_, errno);
  write_all(file_.get(), text.data(), text.size(), path_);
}

Descriptor wait_for_folder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) fail_system("open the folder", path, errno);
  // flock() without LOCK_NB goes on waiting after a signal whose handler restarts calls.
  while (flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (interrupted())
      fail("interrupted while another process was writing the folder ", printable(path),
           "; run the same command again to continue");
    std::this_thread::sleep_for(kLookAgain);
  }
  return folder;
}

}  // namespace sparsight
