// Compares two models image by image on the same images: McNemar's test and the difference of their accuracies.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/eval/records.h"

namespace sparsight {

// {"data", "split", "images", "a", "b": {"records", "checkpoint", "correct", "accuracy", "interval": [low, high]},
// "routing": recorded_routing},
// "both", "only_a", "only_b", "neither": counts of images by who is right, "mcnemar": {"p_value", "exact",
// "statistic"}, "difference": {"mean", "standard_error", "interval"} of the accuracies, a - b; null for a single image,
// "notes": [...]}. Accuracies are 0 to 1, intervals of 95 % (eval/statistics.h). Raises Error if the images, their
// labels or the class names differ.
Json compare_records(const Records& a, const Records& b);

}  // namespace sparsight
