// Writes a safetensors file whose tensors grow row by row, in constant memory, and reads rows of one: an evaluation's
// record of each image.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors_header.h"

namespace sparsight {

class SafetensorsRowWriter {
 public:
  // Rows are buffered in unnamed files in the folder of `path`, so that a killed process leaves nothing behind.
  explicit SafetensorsRowWriter(const std::string& path);
  ~SafetensorsRowWriter();
  SafetensorsRowWriter(const SafetensorsRowWriter&) = delete;
  SafetensorsRowWriter& operator=(const SafetensorsRowWriter&) = delete;

  // rows: [n,...], all of one type and one shape after n for each name.
  void append(const std::string& name, const at::Tensor& rows);
  // The shape to write instead, of as many numbers; no rows can be appended afterwards.
  void reshape(const std::string& name, const std::vector<int64_t>& shape);
  // Bytes written so far.
  int64_t bytes() const;
  // Writes `path` by way of a temporary file. Without it nothing appears.
  void commit(const std::map<std::string, std::string>& metadata) const;
  // Writes into a file that its owner commits, together with others.
  void write(AtomicFile& out, const std::map<std::string, std::string>& metadata) const;

 private:
  struct Column;
  std::string path_;
  std::map<std::string, std::unique_ptr<Column>> columns_;  // by name
};

// Reads parts of tensors, whose checksums it therefore does not check.
class SafetensorsRowReader {
 public:
  // Raises Error for a file that violates the format, as read_safetensors().
  explicit SafetensorsRowReader(const std::string& path);
  // Rows first .. last - 1 of a tensor. Raises Error for one that is missing or has fewer rows.
  at::Tensor rows(const std::string& name, int64_t first, int64_t last) const;

 private:
  std::string path_;
  SafetensorsHeader header_;
  Descriptor file_;
  size_t data_start_ = 0;
};

}  // namespace sparsight
