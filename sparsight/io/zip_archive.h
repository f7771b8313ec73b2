// Reads the entries of a zip archive, checked against their CRC-32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sparsight {

class ZipArchive {
 public:
  // Raises Error if the file is not a zip archive, or its directory is damaged.
  explicit ZipArchive(const std::string& path);
  ~ZipArchive();

  // "archive/" if the first entry is archive/data.pkl; empty if it is in no folder.
  std::string first_folder() const;
  bool has(const std::string& part) const;
  // Uncompressed size by the archive's directory. 0 if there is no such entry.
  uint64_t bytes(const std::string& part) const;
  // Reads a whole entry of exactly `bytes` bytes. False if it is damaged.
  [[nodiscard]] bool read(const std::string& part, void* to, size_t bytes) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace sparsight
