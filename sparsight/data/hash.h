// Checksums of files.
#pragma once

#include <memory>
#include <string>
#include "sparsight/core/bytes.h"

namespace sparsight {

// SHA-256 (64 hexadecimal digits) or, for old datasets that publish nothing else, MD5 (32).
class Hasher {
 public:
  explicit Hasher(const std::string& algorithm = "sha256");  // or "md5"
  ~Hasher();
  void add(const void* data, size_t bytes);
  std::string hex();  // finishes the hash

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The algorithm of a hexadecimal digest, by its length.
std::string digest_algorithm(const std::string& hex);

std::string hash_bytes(ByteView bytes, const std::string& algorithm = "sha256");
std::string hash_file(const std::string& path, const std::string& algorithm = "sha256");

}  // namespace sparsight
