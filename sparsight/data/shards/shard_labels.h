// From the labels that shards have, numbers or names, to classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/data/shards/index_shard.h"

namespace sparsight {

struct ShardLabels {
  std::vector<std::string> classes;          // printable
  std::vector<std::vector<int32_t>> labels;  // of each shard, of each image
};

// The lines of classes.txt. Raises Error for none, an empty one, and one that is there twice.
std::vector<std::string> parse_class_names(std::string_view text, const std::string& name);

// Numbers are places in `names`; without names, classes are the numbers if all labels are some, else the names that
// occur, in byte order. Raises Error naming shard and member for a label that is not among the names.
ShardLabels resolve_labels(const std::vector<ShardIndex>& shards, const std::vector<std::string>& names);

}  // namespace sparsight
