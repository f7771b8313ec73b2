#include "sparsight/engine/file/mapped_file.h"

#include <utility>

#include "sparsight/core/error.h"

#if defined(__linux__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sparsight::engine {
namespace {

int64_t time_of(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

bool has_trusted_owner(const struct stat& one, const struct stat& other) {
  return one.st_uid == other.st_uid || one.st_uid == geteuid() || one.st_uid == 0;
}

// Whether nobody may write the one file but those who may write the other, this user and root.
bool is_as_safe(const struct stat& one, const struct stat& other) {
  const mode_t shared = one.st_gid == other.st_gid ? other.st_mode : other.st_mode & ~S_IWGRP;
  return has_trusted_owner(one, other) && (one.st_mode & ~shared & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

bool is_of_another_user(const std::string& path, const std::string& like) {
  struct stat status {
  }, other{};
  return stat(path.c_str(), &status) == 0 && stat(like.c_str(), &other) == 0 && !has_trusted_owner(status, other);
}

std::unique_ptr<MappedFile> MappedFile::open(const std::string& path, const std::string& like) {
  struct stat status {
  }, other{};
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fstat(file.get(), &status) != 0 || stat(like.c_str(), &other) != 0 || !S_ISREG(status.st_mode) ||
      !is_as_safe(status, other))
    return nullptr;
  const auto bytes = static_cast<int64_t>(status.st_size);
  std::unique_ptr<MappedFile> mapped(new MappedFile(std::move(file), bytes, time_of(status)));
  void* const data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, mapped->file_.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  mapped->data_ = static_cast<char*>(data);
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, static_cast<size_t>(bytes_));
}

bool MappedFile::read(int64_t offset, void* to, int64_t count) const {
  try {
    read_all_at(file_.get(), to, static_cast<size_t>(count), static_cast<size_t>(offset), "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool MappedFile::load([[maybe_unused]] int64_t offset, [[maybe_unused]] int64_t count) const {
#ifdef MADV_POPULATE_READ
  const int64_t page = sysconf(_SC_PAGESIZE), first = offset / page * page;
  if (madvise(data_ + first, static_cast<size_t>(offset - first + count), MADV_POPULATE_READ) != 0 &&
      errno != EINVAL)  // which Linux before 5.14 says
    return false;
#endif
  return is_unchanged();
}

bool MappedFile::is_unchanged() const {
  struct stat status {};
  return fstat(file_.get(), &status) == 0 && status.st_size == bytes_ && time_of(status) == time_;
}

void MappedFile::replace(FunctionRef<void(char* memory)> fill) {
  const auto size = static_cast<size_t>(bytes_);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("not enough memory for ", size >> 20, " MB more; use a smaller model");
  try {
    fill(static_cast<char*>(memory));
    if (mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED)
      fail("not enough memory for ", size >> 20, " MB more; use a smaller model");
  } catch (...) {
    munmap(memory, size);
    throw;
  }
}

}  // namespace sparsight::engine

#else

namespace sparsight::engine {

bool is_of_another_user(const std::string&, const std::string&) { return false; }
std::unique_ptr<MappedFile> MappedFile::open(const std::string&, const std::string&) { return nullptr; }
MappedFile::~MappedFile() = default;
bool MappedFile::read(int64_t, void*, int64_t) const { return false; }
bool MappedFile::load(int64_t, int64_t) const { return false; }
bool MappedFile::is_unchanged() const { return false; }
void MappedFile::replace(FunctionRef<void(char*)>) {}

}  // namespace sparsight::engine

#endif
