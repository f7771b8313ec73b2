// The figures and tables of papers that `sparsight reproduce` can rerun.
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
