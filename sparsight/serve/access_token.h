// The token that a server may ask for.
#pragma once

#include <string>
#include <string_view>

namespace sparsight::serve {

// Whether an Authorization header is "Bearer TOKEN" (RFC 6750; the scheme in any case). The time it takes depends on
// the length of what is given, not on how much of it is right.
bool is_authorized(std::string_view authorization, const std::string& token);

}  // namespace sparsight::serve
