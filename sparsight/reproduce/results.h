// Turns job results into the table of a figure: the values of each seed, their means and deviations, and the paper's
// numbers next to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

std::string scale_name(Scale scale);
Scale find_scale(const std::string& name);  // raises UsageError for an unknown name

// `results[i]` is what `jobs[i]` measured, null if it did not finish. Jobs with equal axes form a row. The paper's
// numbers are left out unless `compared` (RunData::is_compared).
ResultTable make_table(const Figure& figure, const std::vector<Json>& jobs, const std::vector<Json>& results,
                       bool compared);

// Whether two settings have the same values on these axes.
bool same_on(const std::vector<std::string>& axes, const Json& a, const Json& b);

}  // namespace sparsight
