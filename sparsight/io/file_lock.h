// A lock between processes, also across machines on a shared disk: a file that exists while the lock is held. It is
// released when the process ends, for whatever reason.
#pragma once

#include <optional>
#include <string>

#include "sparsight/io/atomic_file.h"

namespace sparsight {

class FileLock {
 public:
  // Nothing if another process holds it. Raises Error if the file cannot be created, or if something else stands there:
  // a link (whose target is not touched), a folder, a pipe or a device. On a file system without locks every process
  // gets it.
  static std::optional<FileLock> try_take(const std::string& path);
  // Whether a process holds the lock of this file now; false for what is no file of its own.
  static bool is_held(const std::string& path);

  ~FileLock();  // removes the file
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

  // Whether the file was left by a process that ended without releasing the lock, such as a killed one.
  bool was_left_behind() const { return left_behind_; }
  // Content of the file, for other processes: such as who holds the lock.
  void write(const std::string& text);

 private:
  FileLock(std::string path, Descriptor file, bool left_behind)
      : path_(std::move(path)), file_(std::move(file)), left_behind_(left_behind) {}

  std::string path_;
  Descriptor file_;
  bool left_behind_;
};

// Waits for the lock of a folder, held until the value is destroyed. On a file system without locks it does not wait.
// Raises Error if the folder cannot be opened, and when interrupted() (core/interrupt.h).
Descriptor wait_for_folder(const std::string& path);

}  // namespace sparsight
