// Compares two models image by image on the same images: McNemar's test and the difference of their accuracies.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/eval/records.h"

namespace sparsight {

// The records at `path`, a folder that records_folder() takes. Of an attack's folder: those after the attack, but an
// image that was wrong before it keeps its prediction, so that the accuracy is the attack's robust accuracy
// (Records::robust).
Records read_compared(const std::string& path);

// {"data", "split", "images", "multi_label", "a", "b": {"records", "checkpoint", "correct", "accuracy", "interval":
// [low, high]}, "robust", "routing": recorded_routing}, "both", "only_a", "only_b", "neither": counts of images by who
// is right, "mcnemar": {"p_value", "exact", "statistic"}, "difference": {"mean", "standard_error", "interval"} of the
// accuracies (of multi-label data, precision@1), a - b; null for a single image, "notes": [...]}. Accuracies are 0 to
// 1, intervals of 95 % (eval/statistics.h). Raises Error if the images, their labels or the class names differ.
Json compare_records(const Records& a, const Records& b);

}  // namespace sparsight
