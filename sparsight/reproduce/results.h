// Turns job results into the table of a figure: means and deviations over seeds, next to the paper's numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

std::string scale_name(Scale scale);
Scale scale_of(const std::string& name);  // raises UsageError for an unknown name

// "" if the figure has no synthetic substitute.
std::string substitute_of(const Figure& figure, const FigureRun& run);

// `results[i]` is what `jobs[i]` measured, null if it did not finish. Jobs with equal axes form a row. The paper's
// numbers are left out if synthetic substitute data was used.
ResultTable make_table(const Figure& figure, const std::vector<Json>& jobs, const std::vector<Json>& results,
                       bool synthetic);

}  // namespace sparsight
