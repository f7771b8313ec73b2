#include "sparsight/data/decorators/subset.h"

#include "sparsight/core/error.h"

namespace sparsight {

SubsetDataSet::SubsetDataSet(DataSetPtr base, std::vector<int64_t> indices)
    : base_(std::move(base)), indices_(std::move(indices)) {
  for (const int64_t index : indices_) SPARSIGHT_CHECK(index >= 0 && index < base_->size());
}

}  // namespace sparsight
