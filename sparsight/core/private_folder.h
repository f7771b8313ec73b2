// A folder in the system's temporary one that only this user may enter, removed with all that is in it.
#pragma once

#include <string>

namespace sparsight {

class PrivateFolder {
 public:
  // name: "sparsight-ranks"; letters that make it unique follow. Raises Error where it cannot be made.
  explicit PrivateFolder(const std::string& name);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sparsight
