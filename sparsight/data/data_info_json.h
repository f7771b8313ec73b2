// A dataset's description as JSON, as checkpoints keep it (state.data).
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

Json to_json(const DataInfo& info);

// Raises Error for missing or ill-typed keys and for super-class indices out of range.
DataInfo data_info_from(const Json& json);

}  // namespace sparsight
