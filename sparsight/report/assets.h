// The scripts and the style sheet of the report page, built into the program (assets.S).
#pragma once

#include <string_view>

namespace sparsight::assets {

std::string_view vega();
std::string_view vega_lite();
std::string_view vega_embed();
std::string_view page_style();
std::string_view page_watch();   // runs first: records errors and blocked requests
std::string_view page_photos();  // opens the photos of a confusion
std::string_view page_charts();  // runs last: draws the charts

}  // namespace sparsight::assets
