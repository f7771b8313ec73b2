#include "sparsight/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sparsight {

bool is_file_of(int descriptor, const std::string& path) {
  struct stat held, named;
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

std::optional<FileLock> FileLock::try_take(const std::string& path) {
  while (true) {
    int value = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool existed = value < 0 && errno == EEXIST;
    if (existed) value = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (value < 0) fail_system("write", path, errno);
    Descriptor file(value);
    if (flock(value, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
    // Between the two calls the holder may have released the lock and removed this file: then this lock is worthless.
    if (is_file_of(value, path)) return FileLock(path, std::move(file), existed);
  }
}

bool FileLock::is_held(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
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
  while (flock(folder.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return folder;
}

}  // namespace sparsight
