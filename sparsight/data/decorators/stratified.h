// Random subsets of a dataset that keep its proportions of classes and domains; functions of the seed and the labels.
#pragma once

#include <utility>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// Splits 0..N-1 into (1 - fraction, fraction): the second subset has round(fraction * N) indices, of which every
// (class, domain) has its proportional number to within one. Both subsets are in ascending order.
std::pair<std::vector<int64_t>, std::vector<int64_t>> stratified_split(const DataSet& set, double fraction,
                                                                       uint64_t seed);

// At most `limit` indices, ascending, with equal numbers of each class if possible (classes with few images leave room
// for others).
std::vector<int64_t> balanced_subset(const DataSet& set, int64_t limit, uint64_t seed);

}  // namespace sparsight
