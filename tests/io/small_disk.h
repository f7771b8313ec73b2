// A disk of a megabyte that a test can fill: a tmpfs mounted for the test (needs root).
#pragma once

#include <sys/mount.h>

#include "tests/io/temporary_folder.h"

namespace sparsight {

class SmallDisk {
 public:
  explicit SmallDisk(const std::string& options = "size=1m")
      : mounted_(mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0) {}
  ~SmallDisk() {
    if (mounted_) umount(folder_.path().c_str());
  }
  bool mounted() const { return mounted_; }
  bool make_read_only() { return mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

}  // namespace sparsight
