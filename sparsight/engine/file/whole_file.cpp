#include "sparsight/engine/file/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "sparsight/core/input_file.h"
#include "sparsight/core/output_file.h"

namespace sparsight::engine {
namespace {

// A new file with its lock, or none where another process writes it.
Descriptor create_locked(const std::string& path, mode_t mode) {
  for (int tries = 0; tries < 2; ++tries) {
    Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() >= 0) {
      const bool own = lock_while_written(file.get()) && is_same_file(file.get(), path);
      return own ? std::move(file) : Descriptor();  // another process may have taken it for what a killed one left
    }
    if (errno != EEXIST) fail_system("write", path, errno);
    // Its writer is at work, or was killed: then its lock is free.
    const Descriptor left(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (left.get() < 0 && errno == ENOENT) continue;
    if (left.get() < 0) fail_system("write", path, errno);
    if (!lock_while_written(left.get())) return Descriptor();
    if (is_same_file(left.get(), path) && unlink(path.c_str()) != 0) fail_system("remove", path, errno);
  }
  return Descriptor();
}

}  // namespace

bool write_whole_file(const std::string& path, const std::string& like, FunctionRef<void(WriteBytes write)> fill) {
  const std::string temporary = path + ".tmp";
  struct stat status {};
  const bool secret = stat(like.c_str(), &status) != 0 || (status.st_mode & S_IROTH) == 0;
  const Descriptor file = create_locked(temporary, secret ? 0400 : 0444);
  if (file.get() < 0) return false;
  try {
    fill([&](const void* bytes, size_t count) { write_all(file.get(), bytes, count, path); });
    // Network disks report a full disk only now.
    if (fsync(file.get()) != 0 && errno != EINVAL) fail_system("write", path, errno);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail_system("write", path, errno);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  return true;
}

}  // namespace sparsight::engine
