// From what jobs measured to the table of a figure: means and deviations over seeds, beside the paper's numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

std::string scale_name(Scale scale);
Scale scale_of(const std::string& name);  // raises UsageError for a name that is none

// "" where the figure has no synthetic substitute.
std::string substitute_of(const Figure& figure, const FigureRun& run);

// `results[i]` is what `jobs[i]` measured, null where it did not come to its end. Jobs with the same axes make a row.
// The paper's numbers are left out where synthetic substitute data was used.
ResultTable make_table(const Figure& figure, const std::vector<Json>& jobs, const std::vector<Json>& results,
                       bool synthetic);

}  // namespace sparsight
