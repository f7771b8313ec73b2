#include "sparsight/data/readers/bytes.h"

#include <ATen/ops/from_blob.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "sparsight/core/error.h"

namespace sparsight {

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
