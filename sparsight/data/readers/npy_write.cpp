#include "sparsight/data/readers/npy_write.h"

#include "sparsight/core/error.h"

namespace sparsight {

std::string encode_npy(const at::Tensor& array) {
  SPARSIGHT_CHECK(array.scalar_type() == at::kLong || array.scalar_type() == at::kDouble);
  constexpr size_t kPrefix = 10, kAlignment = 64;  // of the magic, version and length; of the values
  std::string shape;
  for (const int64_t size : array.sizes()) shape += std::to_string(size) + ",";
  std::string header = cat("{'descr': '", array.scalar_type() == at::kLong ? "<i8" : "<f8",
                           "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.append(kAlignment - (kPrefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  SPARSIGHT_CHECK(header.size() < 1 << 16);
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  const at::Tensor values = array.to(at::kCPU).contiguous();
  return file + header + std::string(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
}

}  // namespace sparsight
