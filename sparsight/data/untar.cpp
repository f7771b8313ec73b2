#include "sparsight/data/untar.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/data/shards/tar_header.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

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
    read(&header, kTarBlock);
    if (is_tar_end(header)) return false;
    const auto size = tar_size(header);
    if (!has_right_checksum(header) || !size) fail(path_, " is a damaged tar archive");
    left_ = static_cast<uint64_t>(*size);
    padding_ = static_cast<size_t>(tar_padding(*size));
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
    std::string name = tar_name(header);
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
