#include "sparsight/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {
namespace {

// The rename must survive a power failure. Some file systems cannot sync a folder; the rename is still atomic there.
void sync_parent(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const Descriptor folder(open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) fsync(folder.get());
}

bool have_equal_bytes(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::file_size(a, error) != std::filesystem::file_size(b, error) || error) return false;
  std::ifstream left(a, std::ios::binary), right(b, std::ios::binary);
  std::vector<char> from_left(1 << 20), from_right(from_left.size());
  while (left && right) {
    left.read(from_left.data(), std::ssize(from_left)), right.read(from_right.data(), std::ssize(from_right));
    if (left.gcount() != right.gcount() ||
        !std::equal(from_left.begin(), from_left.begin() + left.gcount(), from_right.begin()))
      return false;
  }
  return left.eof() && right.eof();
}

}  // namespace

void create_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail_system("make the folder", path, error.value());
}

AtomicFile::AtomicFile(const std::string& path, Existing existing) : path_(behind_links(path)), existing_(existing) {
  std::error_code none;
  const auto there = std::filesystem::status(path_, none);
  if (std::filesystem::is_directory(there))
    fail("cannot write ", printable(path), ": it is a folder; name a file in it");
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    fail("cannot write ", printable(path), ": it is a device, a pipe or a socket; name a file");
  remove_stale_temporaries(path_);
  while (true) {  // another machine that shares the disk may have a process of this number
    const std::string name = temporary_name(path_);
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail_system("write", path == path_ ? path : cat(path, " (a link to ", path_, ")"), errno);
    temporary_ = name;
    // Another process may have taken the new file for a stale one.
    if (lock_while_written(descriptor_) && is_same_file(descriptor_, name)) return;
    close(descriptor_);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) { write_all(descriptor_, data, bytes, path_); }

// Gives the file its name unless another has it. False on a disk that cannot do that.
bool AtomicFile::keep_existing() {
  if (link(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno != EEXIST) return false;
    if (!have_equal_bytes(temporary_, path_))
      fail(printable(path_), " exists already with other content; name another file, or replace it with --overwrite");
  }
  unlink(temporary_.c_str());
  return true;
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail_system("write", path_, errno);
  const Descriptor lock(fcntl(descriptor_, F_DUPFD_CLOEXEC, 0));  // held until the file has its name
  const int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail_system("write", path_, errno);  // network disks report a full disk here
  if (existing_ == Existing::replace || !keep_existing()) {
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system("write", path_, errno);
  }
  temporary_.clear();
  sync_parent(path_);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace sparsight
