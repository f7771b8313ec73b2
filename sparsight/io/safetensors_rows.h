// Writes a safetensors file whose tensors grow row by row, in memory that does not grow with them: what an evaluation
// says of each image.
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
  // Rows wait in files beside `path` that have no name, so that nothing remains of a process that is killed.
  explicit SafetensorsRowWriter(const std::string& path);
  ~SafetensorsRowWriter();
  SafetensorsRowWriter(const SafetensorsRowWriter&) = delete;
  SafetensorsRowWriter& operator=(const SafetensorsRowWriter&) = delete;

  // rows: [n,...], all of one type and one shape after n for each name.
  void append(const std::string& name, const at::Tensor& rows);
  // The bytes so far.
  int64_t bytes() const;
  // Writes `path`, aside and renamed. Nothing appears without it.
  void commit(const std::map<std::string, std::string>& metadata) const;
  // Writes into a file that its owner commits, with others.
  void write(AtomicFile& out, const std::map<std::string, std::string>& metadata) const;

 private:
  struct Column;
  std::string path_;
  std::map<std::string, std::unique_ptr<Column>> columns_;  // by name
};

}  // namespace sparsight
