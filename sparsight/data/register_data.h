// The list of data sets that [data] name can choose.
#pragma once

#include <cstdint>

#include "sparsight/core/registry.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct DataContext {
  uint64_t seed = 0;  // of the run; splits off a validation part
};

const Registry<DataSplits, DataContext>& data_sets();

}  // namespace sparsight
