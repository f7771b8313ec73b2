#include "sparsight/data/readers/bytes.h"

#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
};

}  // namespace

Bytes read_bytes(const std::string& path, int64_t max_bytes) {
  const OpenFile file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
    fail("cannot read ", printable(path), ": ", std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail("cannot read ", printable(path), ": it is a folder, a file is needed");
  if (!S_ISREG(status.st_mode)) fail("cannot read ", printable(path), ": it is not a regular file");
  if (status.st_size > max_bytes)
    fail(printable(path), " has ", status.st_size, " bytes; at most ", max_bytes, " are read");
  Bytes bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.descriptor, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read ", printable(path), ": ", std::strerror(errno));
    if (got == 0) fail(printable(path), " became shorter while it was being read; try again when it is complete");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool starts_with(ByteView bytes, std::string_view text, size_t at) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

bool is_gzip(ByteView bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

Bytes inflate(ByteView compressed, size_t limit, const std::string& name) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail(name, ": not enough memory to unpack");
  const std::unique_ptr<z_stream, int (*)(z_streamp)> close_stream(&stream, inflateEnd);
  Bytes out;
  size_t taken = 0, filled = 0;
  while (filled < limit) {
    if (filled == out.size()) out.resize(std::min(limit, std::max<size_t>(out.size() * 2, 1 << 16)));
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
