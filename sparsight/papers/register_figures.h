// The figures and tables of the papers that can be run again.
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

// In the order of `sparsight reproduce list`.
const std::vector<Figure>& figures();

// Raises UsageError for an unknown name, with the nearest one and the list.
const Figure& find_figure(const std::string& name);

}  // namespace sparsight
