// Preloaded into a program under test (disk_faults.h): counts what it does to files below a folder, in all of its
// processes together, and at one of these operations kills the process or makes the disk full.
//
//   SPARSIGHT_FAULT_FOLDER   absolute path
//   SPARSIGHT_FAULT_COUNTER  a file of 8 zero bytes, shared by all processes
//   SPARSIGHT_FAULT_AT       number of the operation, from 1; 0: none
//   SPARSIGHT_FAULT_KIND     "kill": the process, in the middle of a write; "full": this and all later operations
//   SPARSIGHT_FAULT_LOG      where each operation is appended, "write PATH"; optional
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using Write = ssize_t(int, const void*, size_t);
using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);

struct Plan {
  const char* folder = getenv("SPARSIGHT_FAULT_FOLDER");
  long at = 0;
  bool full = false;
  int log = -1;
  std::atomic<long>* count = nullptr;

  Plan() {
    if (!folder) return;
    const char *number = getenv("SPARSIGHT_FAULT_AT"), *kind = getenv("SPARSIGHT_FAULT_KIND");
    at = number ? atol(number) : 0;
    full = kind && strcmp(kind, "full") == 0;
    if (const char* path = getenv("SPARSIGHT_FAULT_LOG"); path && *path)
      log = real<Open>("open")(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    const int file = real<Open>("open")(getenv("SPARSIGHT_FAULT_COUNTER"), O_RDWR | O_CLOEXEC);
    void* shared = mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) abort();
    count = static_cast<std::atomic<long>*>(shared);
  }
};

// Made at the first operation: other libraries open files before the constructors of this one run.
const Plan& plan() {
  static const Plan made;
  return made;
}

bool is_watched(const char* path) {
  const char* folder = plan().folder;
  if (!folder || !path) return false;
  char whole[2 * PATH_MAX];
  if (*path != '/') {
    if (!getcwd(whole, PATH_MAX)) return false;
    strcat(whole, "/");
    strncat(whole, path, PATH_MAX - 1);
    path = whole;
  }
  const size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

const char* descriptor_path(int descriptor, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return nullptr;
  path[length] = 0;
  return path;
}

enum class Fault { none, kill, full };

// The fault of the next operation, if its file is watched.
Fault next(const char* operation, const char* path) {
  if (!is_watched(path)) return Fault::none;
  const Plan& faults = plan();
  const long number = ++*faults.count;
  if (faults.log >= 0) {
    char line[PATH_MAX + 32];
    const int length = snprintf(line, sizeof line, "%s %s\n", operation, path);
    if (real<Write>("write")(faults.log, line, static_cast<size_t>(length)) != length) abort();
  }
  if (faults.at == 0) return Fault::none;
  if (faults.full) return number >= faults.at ? Fault::full : Fault::none;
  return number == faults.at ? Fault::kill : Fault::none;
}

Fault next(const char* operation, int descriptor) {
  if (!plan().folder) return Fault::none;
  char path[PATH_MAX];
  return next(operation, descriptor_path(descriptor, path));
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

// Whether the operation may go on; errno is set where not.
bool goes_on(Fault fault) {
  if (fault == Fault::kill) die();
  if (fault == Fault::full) errno = ENOSPC;
  return fault == Fault::none;
}

// What removes or empties a file works on a full disk.
void only_killed(Fault fault) {
  if (fault == Fault::kill) die();
}

bool creates(const char* path, int flags) {
  struct stat found;
  return (flags & O_CREAT) && stat(path, &found) != 0;
}

mode_t mode_in(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  if (creates(path, flags) && !goes_on(next("create", path))) return -1;
  return real<Open>("open")(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  if (creates(path, flags) && !goes_on(next("create", path))) return -1;
  return real<Open>("open64")(path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  if (*mode != 'r' && creates(path, O_CREAT) && !goes_on(next("create", path))) return nullptr;
  return real<FILE*(const char*, const char*)>("fopen")(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  if (*mode != 'r' && creates(path, O_CREAT) && !goes_on(next("create", path))) return nullptr;
  return real<FILE*(const char*, const char*)>("fopen64")(path, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  const Fault fault = next("write", descriptor);
  if (fault == Fault::kill && bytes > 1) real<Write>("write")(descriptor, data, bytes / 2);
  return goes_on(fault) ? real<Write>("write")(descriptor, data, bytes) : -1;
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  const Fault fault = next("write", descriptor);
  if (fault == Fault::kill && count > 1) real<Write>("write")(descriptor, parts[0].iov_base, parts[0].iov_len);
  return goes_on(fault) ? real<ssize_t(int, const iovec*, int)>("writev")(descriptor, parts, count) : -1;
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  return goes_on(next("write", descriptor))
             ? real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, data, bytes, offset)
             : -1;
}

ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  return goes_on(next("write", descriptor))
             ? real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(descriptor, data, bytes, offset)
             : -1;
}

int fsync(int descriptor) { return goes_on(next("sync", descriptor)) ? real<int(int)>("fsync")(descriptor) : -1; }

int syncfs(int descriptor) { return goes_on(next("sync", descriptor)) ? real<int(int)>("syncfs")(descriptor) : -1; }

int rename(const char* from, const char* to) {
  return goes_on(next("rename", to)) ? real<int(const char*, const char*)>("rename")(from, to) : -1;
}

int mkdir(const char* path, mode_t mode) {
  struct stat found;
  if (stat(path, &found) == 0) return real<int(const char*, mode_t)>("mkdir")(path, mode);
  return goes_on(next("mkdir", path)) ? real<int(const char*, mode_t)>("mkdir")(path, mode) : -1;
}

int unlink(const char* path) {
  only_killed(next("remove", path));
  return real<int(const char*)>("unlink")(path);
}

int rmdir(const char* path) {
  only_killed(next("remove", path));
  return real<int(const char*)>("rmdir")(path);
}

int remove(const char* path) {
  struct stat found;
  if (lstat(path, &found) == 0) only_killed(next("remove", path));
  return real<int(const char*)>("remove")(path);
}

int unlinkat(int folder, const char* name, int flags) {
  if (folder == AT_FDCWD)
    only_killed(next("remove", name));
  else
    only_killed(next("remove", folder));
  return real<int(int, const char*, int)>("unlinkat")(folder, name, flags);
}

int ftruncate(int descriptor, off_t size) {
  only_killed(next("truncate", descriptor));
  return real<int(int, off_t)>("ftruncate")(descriptor, size);
}

int ftruncate64(int descriptor, off64_t size) {
  only_killed(next("truncate", descriptor));
  return real<int(int, off64_t)>("ftruncate64")(descriptor, size);
}

}  // extern "C"
