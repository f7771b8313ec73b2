// Splits of a dataset by the names that --split takes.
#pragma once

#include <string>

#include "sparsight/data/data_set.h"

namespace sparsight {

// split: "train", "val" or "test". Null where the dataset has none.
inline DataSetPtr named_split(const DataSplits& splits, const std::string& split) {
  if (split == "train") return splits.train;
  return split == "val" ? splits.validation : splits.test;
}

// Whether the test split is the validation split, because the dataset has no other.
inline bool tests_on_validation(const DataSplits& splits, const std::string& split) {
  return split == "test" && splits.test == splits.validation;
}

}  // namespace sparsight
