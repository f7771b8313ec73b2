// Reads the tensors of a safetensors file one at a time, with its header in memory and the file closed in between: a
// folder may have more files than a process may open.
#pragma once

#include <string>

#include "sparsight/io/safetensors.h"

namespace sparsight {

class SafetensorsReader {
 public:
  // Raises Error for a file that violates the format, as read_safetensors().
  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

  // A tensor of the header, into contiguous memory of its size. Raises Error where it does not match its checksum.
  void read(const TensorEntry& entry, void* to) const;
  at::Tensor read(const TensorEntry& entry) const;

 private:
  std::string path_;
  SafetensorsHeader header_;
  size_t data_start_ = 0;
};

}  // namespace sparsight
