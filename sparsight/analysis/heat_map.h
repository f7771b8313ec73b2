// A table of counts as an image, for explain's PNG files. (The report draws its own with Vega-Lite.)
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// counts: [K][E] numbers, such as RoutingAccumulator::class_expert() of a layer. Each row with counts is shown as
// fractions of its sum, from dark (0) to bright (the largest fraction of the table), labelled by `rows` if that has K
// names, else numbered. Returns [3,*,*] uint8.
// of: what a row counts, in the legend. columns: [E] names, listed below it; or none.
at::Tensor heat_map_picture(const std::string& title, const Json& counts, const std::vector<std::string>& rows,
                            const std::string& of = "a class's assignments",
                            const std::vector<std::string>& columns = {});

}  // namespace sparsight
