// A dataset's description as JSON, as stored in checkpoints (state.data).
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

Json to_json(const DataInfo& info);

// Raises Error for missing keys, wrong types and super-class indices out of range.
DataInfo data_info_from(const Json& json);

}  // namespace sparsight
