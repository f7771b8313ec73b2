// Writes the image files of a dataset as tar shards of the WebDataset format, which any program that knows tar reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct ShardOptions {
  std::string folder;
  int64_t max_images = 1000;  // of a shard; 0: no limit
  int64_t max_bytes = 0;      // of a shard, of one with several images; 0: no limit
  bool shuffled = true;       // images in random order, not that of the dataset
  uint64_t seed = 0;          // of that order
};

// Sets max_images or max_bytes from "1000", "500MB" or "2GB". Raises UsageError for anything else.
void set_shard_size(ShardOptions& options, const std::string& size);

struct WrittenShards {
  int64_t images = 0, shards = 0;
  int64_t kept = 0;  // of them, shards that were there already
};

// folder/train-000000.tar, ..., with the encoded bytes of each image's file and the number of its class in .cls;
// classes.txt; shards.jsonl (index_file.h) and SHA256SUMS. The bytes depend on nothing but images, order and options.
// Each file appears when it is complete. A folder that an earlier call began is continued: shards that are there are
// compared with the images and kept. `progress` gets (done, total) images. Raises UsageError for images that are no
// files or have several labels, Error for a shard that is there and differs, a file that is no image by its ending,
// and when interrupted.
WrittenShards write_shards(const std::vector<std::pair<std::string, DataSetPtr>>& splits, const ShardOptions& options,
                           const std::function<void(int64_t, int64_t)>& progress);

}  // namespace sparsight
