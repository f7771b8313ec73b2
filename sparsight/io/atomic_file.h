// Files that are either whole or absent: written aside in the same folder, synced to disk and renamed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sparsight/core/input_file.h"

namespace sparsight {

// The ending of files that are being written. One left behind by a killed process may be removed.
inline constexpr std::string_view kTemporaryEnding = ".tmp";

// Whether `name` is one that AtomicFile gives while it writes the file `of` (both without their folder).
bool is_temporary_of(std::string_view of, std::string_view name);

// A file in the making. Nothing appears at `path` before commit(); without it the destructor removes what was written.
// A failure (no space, no permission, read-only disk) raises Error and leaves an earlier file at `path` as it was.
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

// The folder with all above it; nothing happens where it is there.
void create_folder(const std::string& path);

// Writes all of `bytes`, or raises Error naming `path`.
void write_all(int descriptor, const void* data, size_t bytes, const std::string& path);

}  // namespace sparsight
