// Writes a safetensors file whose tensors grow row by row, in constant memory: an evaluation's record of each image.
//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "sparsight/io/atomic_file.h"

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

}  // namespace sparsight
