// The settings that all datasets of files share, and their implementation.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct SplitOptions {
  double validation = 0.1;
  int64_t train_limit = 0;
  int64_t test_limit = 0;
  void declare(OptionSet& set);
};

// Splits off validation images from `parts.train` if there are none, stratified by class and domain, replaces a missing
// validation or test split by the other, and applies the limits. Warns of a class without images in a split. Raises
// Error if a split would be empty.
DataSplits make_splits(DataSplits parts, const SplitOptions& options, const DataContext& context);

}  // namespace sparsight
