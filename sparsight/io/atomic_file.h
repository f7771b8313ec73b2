// Files that are either complete or absent: written to a temporary file in the same folder, synced to disk and renamed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "sparsight/core/input_file.h"
#include "sparsight/core/output_file.h"
#include "sparsight/io/temporary.h"

namespace sparsight {

// What becomes of a file that is there already when another is complete. keep_equal is for commands that must not
// replace a file of other content: one that was killed after its last step, and is run again, finds its own.
enum class Existing { replace, keep_equal };

// A file being written. Nothing appears at `path` before commit(); without it the destructor removes the temporary one.
// A failure (no space, no permission, read-only disk) raises Error and leaves an existing file at `path` unchanged. A
// link at `path` stays: the file is made or replaced where it leads. Temporary files of killed processes are removed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, Existing existing = Existing::replace);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  // Raises Error, and leaves the file at `path`, if that is to be kept and has other bytes.
  void commit();

 private:
  bool keep_existing();

  std::string path_, temporary_;
  Existing existing_;
  int descriptor_ = -1;
};

void write_file_atomically(const std::string& path, std::string_view bytes);

// Creates the folder and its parents; an existing one is fine.
void create_folder(const std::string& path);

}  // namespace sparsight
