// A disk of a megabyte that a test can fill or make read-only: a tmpfs mounted for the test (needs root).
#pragma once

#include <sys/mount.h>

#include <filesystem>
#include <iterator>

#include "tests/support/program.h"

namespace sparsight::testing {

class SmallDisk {
 public:
  explicit SmallDisk(const std::string& options = "size=1m")
      : mounted_(mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0) {}
  ~SmallDisk() {
    if (mounted_) umount(folder_.path().c_str());
  }
  SmallDisk(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  bool make_read_only() { return mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

// The number of entries of a folder.
inline size_t count_entries(const TemporaryFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

}  // namespace sparsight::testing
