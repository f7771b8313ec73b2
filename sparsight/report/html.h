// Makes text, data and images safe for an HTML file. Names and paths are untrusted: nothing reaches a page unescaped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sparsight/core/options.h"

namespace sparsight {

// For element content and quoted attributes. Invalid UTF-8 becomes U+FFFD.
std::string escape_html(std::string_view text);

// JSON for the inside of a <script> element: no "</script", no "<!--" can appear in it.
std::string script_json(const Json& value);

// "data:image/png;base64,..."
std::string data_uri(std::string_view media_type, std::string_view bytes);

}  // namespace sparsight
