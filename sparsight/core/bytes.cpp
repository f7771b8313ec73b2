#include "sparsight/core/bytes.h"

#include <cstring>
#include <filesystem>
#include <system_error>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"

namespace sparsight {

Bytes read_bytes(const std::string& path, int64_t max_bytes) {
  const Descriptor file = open_for_reading(path);
  const auto size = static_cast<int64_t>(size_of_file(file, path));
  if (size > max_bytes) fail(printable(path), " has ", size, " bytes; at most ", max_bytes, " are read");
  Bytes bytes(static_cast<size_t>(size));
  read_all_at(file.get(), bytes.data(), bytes.size(), 0, path);
  return bytes;
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool starts_with(ByteView bytes, std::string_view text, size_t at) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

uint32_t little_endian(ByteView bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace sparsight
