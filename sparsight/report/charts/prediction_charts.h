// What a classifier's predictions on a split look like. Pure functions of an "eval" record.
#pragma once

#include <vector>

#include "sparsight/report/charts/charts.h"

namespace sparsight {

// The confusion matrix of up to kMaxConfusionClasses classes, and accuracy against confidence (a reliability diagram).
// Those that the record has numbers for. photos: the cells of the matrix open those of read_confused() (photos.js).
std::vector<Chart> prediction_charts(const Json& eval, bool photos = false);

inline constexpr size_t kMaxConfusionClasses = 32;  // above, records have the most frequent confusions only
inline constexpr size_t kListedConfusionsOnPage = 20;

}  // namespace sparsight
