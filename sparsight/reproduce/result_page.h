// The result of a figure as one self-contained HTML page: a pure function.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// `pictures`: (caption, bytes of a PNG file, "" where it is missing) of Figure::pictures.
std::string result_page(const FigureOutcome& outcome, const std::vector<std::pair<std::string, std::string>>& pictures);

}  // namespace sparsight
