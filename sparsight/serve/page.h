// The page of the server, built into the program (assets.S).
#pragma once

#include <string_view>

namespace sparsight::serve::assets {

std::string_view serve_page();
std::string_view serve_style();
std::string_view serve_script();

}  // namespace sparsight::serve::assets
