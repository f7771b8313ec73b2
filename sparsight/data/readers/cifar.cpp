#include "sparsight/data/readers/cifar.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {

CifarRecords parse_cifar(ByteView bytes, size_t label_bytes, const std::string& name) {
  constexpr size_t kPixels = 3 * 32 * 32;
  const size_t record = label_bytes + kPixels;
  if (bytes.empty() || bytes.size() % record != 0)
    fail(name, " has ", bytes.size(), " bytes, which is not a whole number of ", record, "-byte records (", label_bytes,
         label_bytes == 1 ? " label byte" : " label bytes",
         " and 3072 pixels); the file is cut off, padded or of another kind");
  const size_t count = bytes.size() / record;
  CifarRecords records;
  records.labels.assign(label_bytes, std::vector<uint8_t>(count));
  Bytes pixels(count * kPixels);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = bytes.data() + i * record;
    for (size_t k = 0; k < label_bytes; ++k) records.labels[k][i] = from[k];
    std::copy_n(from + label_bytes, kPixels, pixels.data() + i * kPixels);
  }
  records.images = adopt(std::move(pixels), 0, {static_cast<int64_t>(count), 3, 32, 32});
  return records;
}

CifarRecords read_cifar(const std::string& path, size_t label_bytes) {
  return parse_cifar(read_bytes(path), label_bytes, printable(path));
}

}  // namespace sparsight
