#include "sparsight/data/shards/tar_header.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

template <size_t N>
std::string text_field(const char (&text)[N]) {
  return std::string(text, strnlen(text, N));
}

// Octal digits after blanks; at most 12, which 64 bits hold.
template <size_t N>
std::optional<uint64_t> octal_field(const char (&text)[N]) {
  static_assert(N <= 12);
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

uint64_t sum_of_header(const TarHeader& header) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  constexpr size_t kFirst = offsetof(TarHeader, checksum), kEnd = kFirst + sizeof header.checksum;
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= kFirst && i < kEnd ? ' ' : bytes[i];
  return sum;
}

}  // namespace

bool is_tar_end(const TarHeader& header) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  return std::all_of(bytes, bytes + kTarBlock, [](unsigned char c) { return c == 0; });
}

bool has_right_checksum(const TarHeader& header) { return octal_field(header.checksum) == sum_of_header(header); }

std::optional<int64_t> tar_size(const TarHeader& header) {
  const auto first = static_cast<unsigned char>(header.size[0]);
  if (first < 0x80) {
    const auto octal = octal_field(header.size);
    return octal ? std::optional(static_cast<int64_t>(*octal)) : std::nullopt;
  }
  uint64_t value = first & 0x7F;
  for (size_t i = 1; i < sizeof header.size; ++i) {
    if (value >> 55) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(header.size[i]);
  }
  return static_cast<int64_t>(value);
}

std::string tar_name(const TarHeader& header) {
  const bool has_prefix = std::memcmp(header.magic, "ustar", 5) == 0 && header.prefix[0] != '\0';
  return (has_prefix ? text_field(header.prefix) + "/" : "") + text_field(header.name);
}

TarHeader tar_file_header(const std::string& name, int64_t bytes) {
  TarHeader header{};
  SPARSIGHT_CHECK(name.size() <= sizeof header.name && bytes >= 0 && bytes < int64_t{1} << 33);
  std::memcpy(header.name, name.data(), name.size());
  std::memcpy(header.mode, "0000644", 8);
  std::memcpy(header.uid, "0000000", 8);
  std::memcpy(header.gid, "0000000", 8);
  std::snprintf(header.size, sizeof header.size, "%011llo", static_cast<unsigned long long>(bytes));
  std::memcpy(header.mtime, "00000000000", 12);
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  std::memcpy(header.major, "0000000", 8);
  std::memcpy(header.minor, "0000000", 8);
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", static_cast<unsigned>(sum_of_header(header)));
  header.checksum[7] = ' ';
  return header;
}

}  // namespace sparsight
