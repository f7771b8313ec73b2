// Tables of training on a single environment (Li et al. 2023, table 3): runs whose test environments are all but one.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/results/result_table.h"
#include "sparsight/dg/results/results.h"

namespace sparsight {

// The environment that a run trains on, if it is the only one, of at least three unless the run says that it is one of
// a comparison of sources; else -1.
int64_t find_single_source(const DgResult& run);

// One table per dataset and source that some run has; where no run says that it is of such a comparison, of datasets
// without runs that test one environment alone. Accuracies on the "out" images of every environment, in percent,
// of the step and hyper-parameters with the highest on those of the source; and their gains over those of a baseline
// (single_source_gain() of published_results.h); then what its model costs, where some run says it. baseline: a row;
// "": one of a ResNet-50, or the first. published: with the rows of the paper, whose gains are over its own ResNet-50.
// Raises UsageError if no table has such a baseline.
std::vector<DgTable> single_source_tables(const std::vector<DgResult>& results, const std::string& baseline = "",
                                          bool published = false);

}  // namespace sparsight
