// Files that are either complete or absent: written to a temporary file in the same folder, synced to disk and renamed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "sparsight/io/temporary.h"

namespace sparsight {

// A file being written. Nothing appears at `path` before commit(); without it the destructor removes the temporary one.
// A failure (no space, no permission, read-only disk) raises Error and leaves an existing file at `path` unchanged. A
// link at `path` stays: the file is made or replaced where it leads. Temporary files of killed processes are removed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

void write_file_atomically(const std::string& path, std::string_view bytes);

// Creates the folder and its parents; an existing one is fine.
void create_folder(const std::string& path);

// The whole file. Raises Error if it cannot be read or is larger than `max_bytes`.
std::string read_file(const std::string& path, size_t max_bytes);

// Raises Error: "cannot <action> <path>: <the system's message and what to do>".
[[noreturn]] void fail_system(const std::string& action, const std::string& path, int error_number);

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const { return value_; }

 private:
  int value_;
};

// Writes all of `bytes`, or raises Error naming `path`.
void write_all(int descriptor, const void* data, size_t bytes, const std::string& path);
// Reads exactly `bytes` at `offset`, or raises Error naming `path`.
void read_all_at(int descriptor, void* data, size_t bytes, size_t offset, const std::string& path);
// A file open for reading; a folder raises Error.
Descriptor open_for_reading(const std::string& path);

}  // namespace sparsight
