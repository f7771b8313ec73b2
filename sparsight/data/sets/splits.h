// The settings that every dataset of files shares, and what they do.
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

// Cuts a validation split from `parts.train` where there is none, keeping the balance of classes and domains, takes the
// missing one of validation and test from the other, and applies the limits. Warns of a class without images in a part.
// Raises Error where a part would be empty.
DataSplits make_splits(DataSplits parts, const SplitOptions& options, const DataContext& context);

}  // namespace sparsight
