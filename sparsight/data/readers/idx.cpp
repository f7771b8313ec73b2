#include "sparsight/data/readers/idx.h"

#include <algorithm>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr size_t kMaxRank = 4;
constexpr size_t kMaxHeader = 4 + 4 * kMaxRank;

struct IdxHeader {
  std::vector<int64_t> sizes;
  size_t values_at = 0;
  size_t file_bytes = 0;  // required size of the whole file
};

IdxHeader parse_idx_header(ByteView bytes, const std::string& name) {
  if (bytes.size() < 4) fail(name, " has ", bytes.size(), " bytes; an idx file has at least 4");
  if (bytes[0] != 0 || bytes[1] != 0)
    fail(name, " is not an idx file: it must start with two zero bytes, got ", int{bytes[0]}, " and ", int{bytes[1]});
  if (bytes[2] != 8) fail(name, ": idx values must be unsigned bytes (type 8), got type ", int{bytes[2]});
  const size_t rank = bytes[3];
  if (rank < 1 || rank > kMaxRank) fail(name, ": an idx file must have 1 to ", kMaxRank, " axes, got ", rank);
  IdxHeader header;
  header.values_at = 4 + 4 * rank;
  if (bytes.size() < header.values_at)
    fail(name, ": the idx header ends early (", bytes.size(), " of ", header.values_at, " bytes)");
  for (size_t axis = 0; axis < rank; ++axis) {
    const uint8_t* at = bytes.data() + 4 + 4 * axis;
    header.sizes.push_back(int64_t{at[0]} << 24 | at[1] << 16 | at[2] << 8 | at[3]);
  }
  if (!fits(header.sizes, kMaxFileBytes))
    fail(name, ": the idx header claims more than ", kMaxFileBytes, " values; the header is damaged");
  size_t count = 1;
  for (const int64_t size : header.sizes) count *= static_cast<size_t>(size);
  header.file_bytes = header.values_at + count;
  return header;
}

}  // namespace

at::Tensor parse_idx(Bytes bytes, const std::string& name) {
  const bool packed = is_gzip(bytes);
  const IdxHeader header =
      parse_idx_header(packed ? ByteView(inflate(bytes, kMaxHeader, name)) : ByteView(bytes), name);
  if (packed && header.file_bytes > kMaxUnpackedBytes)
    fail(name, ": the idx header declares ", header.file_bytes, " bytes, at most ", kMaxUnpackedBytes,
         " are decompressed; unpack the file with gunzip if it is right");
  // One byte more than the header declares, to detect a longer file.
  if (packed) bytes = inflate(bytes, header.file_bytes + 1, name);
  if (bytes.size() < header.file_bytes)
    fail(name, " is cut off: its header promises ", header.file_bytes, " bytes", packed ? " (unpacked)" : "",
         ", it has ", bytes.size(), "; get the file again");
  if (bytes.size() > header.file_bytes)
    fail(name, " holds more than the ", header.file_bytes, " bytes", packed ? " (unpacked)" : "",
         " that its header promises; the header or the file is damaged");
  return adopt(std::move(bytes), header.values_at, header.sizes);
}

at::Tensor read_idx(const std::string& path) { return parse_idx(read_bytes(path), printable(path)); }

}  // namespace sparsight
