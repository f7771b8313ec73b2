// Random parts of a dataset that keep its balance of classes and domains. They depend on the seed and the labels only.
#pragma once

#include <utility>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Splits 0..N-1 into (1 - fraction, fraction): the second part has round(fraction * N) indices, and of every (class,
// domain) its share of them to within one. Both parts ascend.
std::pair<std::vector<int64_t>, std::vector<int64_t>> stratified_split(const DataSet& set, double fraction,
                                                                       uint64_t seed);

// At most `limit` indices, ascending, as many of each class as there are (classes with few images leave room for
// others).
std::vector<int64_t> balanced_subset(const DataSet& set, int64_t limit, uint64_t seed);

}  // namespace sparsight
