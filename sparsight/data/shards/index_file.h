// shards.jsonl: what is in the shards of a folder, so that no image needs to be searched for. Its first line has
// format, version and the number of shards; then each line is a shard:
//   {"shard": "train-000000.tar", "split": "train", "bytes": 10240, "sha256": "...", "images": ["0.jpg", ...],
//    "offsets": [512, ...], "sizes": [1234, ...], "labels": [3, ...], "checksums": ["0123456789abcdef", ...]}
// sha256 and checksums may be missing. Labels are numbers or names. Each line has a checksum of its own text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/data/shards/index_shard.h"

namespace sparsight {

inline constexpr const char* kIndexFile = "shards.jsonl";

std::string index_file_begin(size_t shards);
std::string index_file_line(const ShardIndex& index);

// Calls `take` for each shard. `name`: what errors call the file. Raises Error naming the line for one that is damaged,
// has images that do not fit into their shard, or names a shard twice or outside its folder.
void read_index_file(std::string_view text, const std::string& name, const std::function<void(ShardIndex)>& take);

}  // namespace sparsight
