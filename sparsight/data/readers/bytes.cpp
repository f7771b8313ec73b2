#include "sparsight/data/readers/bytes.h"

#include <ATen/ops/from_blob.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

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

bool is_gzip(ByteView bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

Bytes inflate(ByteView compressed, size_t limit, const std::string& name) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail(name, ": not enough memory to unpack");
  const std::unique_ptr<z_stream, int (*)(z_streamp)> close_stream(&stream, inflateEnd);
  Bytes out;
  // Memory that nothing is written to costs nothing, and what is reserved need not be moved when it grows.
  out.reserve(std::min<size_t>(limit, kMaxUnpackedBytes));
  size_t taken = 0, filled = 0;
  while (filled < limit) {
    if (filled == out.size()) out.resize(std::min(limit, filled + std::max<size_t>(filled / 4, 1 << 16)));
    const size_t chunk_in = std::min<size_t>(compressed.size() - taken, 1 << 30);
    const size_t chunk_out = std::min<size_t>(out.size() - filled, 1 << 30);
    stream.next_in = const_cast<Bytef*>(compressed.data() + taken);
    stream.avail_in = static_cast<uInt>(chunk_in);
    stream.next_out = out.data() + filled;
    stream.avail_out = static_cast<uInt>(chunk_out);
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    taken += chunk_in - stream.avail_in;
    filled += chunk_out - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (!is_gzip(compressed.subspan(taken))) break;  // anything else after a member is padding, as for gzip(1)
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR || (status == Z_OK && taken == compressed.size() && filled < out.size())) {
      fail(name, ": the gzip stream ends early (", compressed.size(), " bytes, unpacked ", filled,
           "); the file is cut off, get it again");
    } else if (status != Z_OK) {
      fail(name, ": the gzip stream is damaged (", stream.msg ? stream.msg : "unknown format", "); get the file again");
    }
  }
  out.resize(filled);
  return out;
}

bool fits(at::IntArrayRef sizes, int64_t limit) {
  for (const int64_t size : sizes) {
    limit /= std::max<int64_t>(size, 1);
    if (limit == 0) return false;
  }
  return true;
}

at::Tensor adopt(Bytes bytes, size_t offset, at::IntArrayRef sizes) {
  auto* held = new Bytes(std::move(bytes));
  return at::from_blob(
      held->data() + offset, sizes, [held](void*) { delete held; }, at::kByte);
}

}  // namespace sparsight
