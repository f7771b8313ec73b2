// Time and memory of the runs of domain generalisation, beside what their models cost.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/results/result_table.h"

namespace sparsight {

// One table per dataset with a row per algorithm: means over its runs that have the number. Columns that no run has are
// left out; a dataset whose runs have none of time and memory has no table.
std::vector<DgTable> speed_tables(const std::vector<DgResult>& results);

// "0.1230 s per step (195 images/s), evaluation 800 images/s, peak memory 0.53 GB (0.50 GB in evaluation)"; what is not
// known is left out.
std::string speed_text(const DgSpeed& speed);

}  // namespace sparsight
