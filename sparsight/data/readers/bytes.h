// Gzip streams, and bytes as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "sparsight/core/bytes.h"

namespace sparsight {

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
