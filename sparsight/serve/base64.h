// Base64 (RFC 4648, section 4): bytes in JSON.
#pragma once

#include <optional>
#include <string_view>

#include "sparsight/core/bytes.h"

namespace sparsight::serve {

// Nothing for a text that is not base64: characters outside the alphabet (line breaks too), a length that is no
// multiple of four, or padding elsewhere than at the end.
std::optional<Bytes> decode_base64(std::string_view text);

}  // namespace sparsight::serve
