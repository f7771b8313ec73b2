// Folders that are either whole or absent: filled aside in the same parent folder, synced to disk and renamed.
#pragma once

#include <string>

#include "sparsight/io/atomic_file.h"

namespace sparsight {

// A folder that is being written. Nothing appears at `path` before commit(); without it the destructor removes what was
// made. Parents are made. What killed processes left of `path` is removed. Raises Error where something is at `path`.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::string& aside() const { return temporary_; }  // where to write until then
  void commit();

 private:
  void make_temporary();

  std::string path_, temporary_;
  Descriptor held_;
};

}  // namespace sparsight
