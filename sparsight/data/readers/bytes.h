// Reads whole files as bytes, and gzip streams.
#pragma once

#include <ATen/core/Tensor.h>

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

bool is_gzip(ByteView bytes);

// The first `limit` bytes (or all, if there are fewer) of a gzip stream, all members. Memory grows with the actual
// output, so a zip bomb takes at most `limit`. `name` appears in errors. Raises Error for a damaged stream, and for one
// that ends early before `limit` is reached.
Bytes inflate(ByteView compressed, size_t limit, const std::string& name);

// Whether a tensor of `sizes` (none negative) has at most `limit` values. An axis of size 0 counts as 1: torch
// multiplies the sizes after it, and must not overflow either.
bool fits(at::IntArrayRef sizes, int64_t limit);

// A uint8 tensor of `sizes` that owns `bytes`; its first element is bytes[offset].
at::Tensor adopt(Bytes bytes, size_t offset, at::IntArrayRef sizes);

}  // namespace sparsight
