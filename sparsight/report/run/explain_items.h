// The images that `sparsight explain` uses: from a dataset or given by path.
#pragma once

#include <string>
#include <vector>

#include "sparsight/analysis/explain.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// Up to `count` images: a random sample, the same one each time.
std::vector<ExplainItem> data_set_items(const DataSetPtr& data, int64_t count);

// Image files, read as `channels` (1 or 3). A file's label is the index of its folder's name in `classes`, -1 if it
// is not a class.
std::vector<ExplainItem> file_items(const std::vector<std::string>& files, const std::vector<std::string>& classes,
                                    int64_t channels);

}  // namespace sparsight
