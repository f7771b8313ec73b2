#include "sparsight/data/untar.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

constexpr size_t kBlock = 512;

// A POSIX ustar header (IEEE Std 1003.1, "pax", ustar Interchange Format).
struct TarHeader {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(TarHeader) == kBlock);

template <size_t N>
std::string field(const char (&text)[N]) {
  return std::string(text, strnlen(text, N));
}

template <size_t N>
std::optional<uint64_t> octal(const char (&text)[N]) {
  uint64_t value = 0;
  size_t digits = 0;
  for (const char c : text) {
    if (c == ' ' && digits == 0) continue;
    if (c < '0' || c > '7') break;
    value = value * 8 + static_cast<uint64_t>(c - '0');
    ++digits;
  }
  return digits == 0 ? std::nullopt : std::optional(value);
}

class TarReader {
 public:
  TarReader(const std::string& path, int64_t max_bytes)
      : path_(printable(path)), file_(nullptr, gzclose), may_come_(max_bytes) {
    Descriptor file = open_for_reading(path);
    file_.reset(gzdopen(file.get(), "rb"));
    if (!file_) fail("not enough memory to unpack ", path_);
    file.release();
    gzbuffer(file_.get(), 1 << 18);
  }

  // False at the end of the archive.
  bool next(TarHeader& header) {
    read(&header, kBlock);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
    if (std::all_of(bytes, bytes + kBlock, [](unsigned char c) { return c == 0; })) return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i)
      sum += i >= offsetof(TarHeader, checksum) && i < offsetof(TarHeader, checksum) + sizeof header.checksum
                 ? ' '
                 : bytes[i];
    const auto size = octal(header.size);
    if (octal(header.checksum) != sum || !size) fail(path_, " is a damaged tar archive");
    left_ = *size;
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    return true;
  }

  // The content of the current file, in pieces; empty at its end. It need not be read to the end: see skip().
  ByteView piece() {
    const size_t bytes = std::min<uint64_t>(left_, buffer_.size());
    read(buffer_.data(), bytes);
    left_ -= bytes;
    return ByteView(buffer_.data(), bytes);
  }

  void skip() {
    while (!piece().empty()) {
    }
    read(buffer_.data(), padding_);
  }

 private:
  void read(void* data, size_t bytes) {
    may_come_ -= static_cast<int64_t>(bytes);
    if (may_come_ < 0) fail(path_, " unpacks to more bytes than the dataset has; it is another archive or damaged");
    const int got = gzread(file_.get(), data, static_cast<unsigned>(bytes));
    if (got == static_cast<int>(bytes)) return;
    int code = 0;
    const char* reason = gzerror(file_.get(), &code);
    fail(path_, " is a damaged or cut-off archive (", code == Z_OK || code == Z_BUF_ERROR ? "it ends early" : reason,
         ")");
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  Bytes buffer_ = Bytes(1 << 18);
  uint64_t left_ = 0;
  size_t padding_ = 0;
  int64_t may_come_;  // bytes
};

}  // namespace

void untar(const std::string& archive, const std::map<std::string, std::string>& wanted, int64_t max_bytes) {
  TarReader tar(archive, max_bytes);
  std::map<std::string, std::string> missing = wanted;
  TarHeader header;
  while (!missing.empty() && tar.next(header)) {
    const bool has_prefix = std::memcmp(header.magic, "ustar", 5) == 0 && header.prefix[0] != '\0';
    std::string name = (has_prefix ? field(header.prefix) + "/" : "") + field(header.name);
    if (name.starts_with("./")) name.erase(0, 2);
    const auto found = missing.find(name);
    if (found != missing.end() && (header.type == '0' || header.type == '\0')) {
      AtomicFile file(found->second);
      for (ByteView piece = tar.piece(); !piece.empty(); piece = tar.piece()) file.write(piece.data(), piece.size());
      file.commit();
      missing.erase(found);
    }
    tar.skip();
  }
  if (!missing.empty())
    fail(printable(archive), " has no ", missing.begin()->first, "; it is the wrong archive or damaged");
}

}  // namespace sparsight
