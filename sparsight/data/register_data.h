// The list of datasets that [data] name can choose.
#pragma once

#include "sparsight/core/registry.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

Registry<DataSplits, DataContext>& data_sets();

}  // namespace sparsight
