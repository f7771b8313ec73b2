// The blocks of 512 bytes that describe the members of a tar archive: POSIX ustar (IEEE Std 1003.1, "pax", ustar
// Interchange Format), with GNU's numbers in base 256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sparsight {

inline constexpr size_t kTarBlock = 512;

struct TarHeader {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(TarHeader) == kTarBlock);

// Whether the block is all zeros, as at the end of an archive.
bool is_tar_end(const TarHeader& header);

bool has_right_checksum(const TarHeader& header);

// The size of the member; nothing for what is not a number of at most 63 bits.
std::optional<int64_t> tar_size(const TarHeader& header);

// Prefix and name.
std::string tar_name(const TarHeader& header);

// The same header for the same name and size, on any day and for any user. `name`: at most 100 bytes.
TarHeader tar_file_header(const std::string& name, int64_t bytes);

// The zeros between the end of a member of `bytes` and the next header.
constexpr int64_t tar_padding(int64_t bytes) {
  const auto block = static_cast<int64_t>(kTarBlock);
  return (block - bytes % block) % block;
}

}  // namespace sparsight
