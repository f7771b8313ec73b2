// Images in tar shards (shards/index_shard.h), in a folder or on a web server.
#pragma once

#include "sparsight/data/sets/splits.h"

namespace sparsight {

struct WebDatasetOptions {
  std::string root, train_shards, validation_shards, test_shards, index;
  int64_t channels = 3, read_ahead_mb = 4, cache_mb = 2048;
  SplitOptions splits;
  void declare(OptionSet& set);
};

DataSplits make_webdataset(const WebDatasetOptions& options, const DataContext& context);

}  // namespace sparsight
