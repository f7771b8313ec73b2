// Files as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"

namespace sparsight {

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

// The content of a regular file. Raises Error if it cannot be read or is larger than `max_bytes`.
Bytes read_bytes(const std::string& path, int64_t max_bytes = kMaxFileBytes);

// Whether the path exists; false if that cannot be determined.
bool path_exists(const std::string& path);

// Whether `bytes` has `text` at offset `at`.
bool starts_with(ByteView bytes, std::string_view text, size_t at = 0);

// The number in the `size` bytes from `at` on, at most 4, the lowest byte first. They must be there.
uint32_t little_endian(ByteView bytes, size_t at, size_t size);

}  // namespace sparsight
