// The index of weights in several files (io/sharded_weights.h): which tensors there are, and which file has each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sparsight {

inline constexpr const char* kShardIndex = "model.safetensors.index.json";

// Whether `path` is a folder with an index of this name, or an index, whose name ends with ".safetensors.index.json".
bool is_sharded(const std::string& path);

struct WeightFileIndex {
  std::string folder, name;                     // which has the files; of the index
  std::vector<std::string> files;               // their names
  std::vector<std::string> tensors;             // by name, in the order of the index
  std::map<std::string, size_t> file_of;        // tensor -> file
  std::map<std::string, int64_t> experts;       // layer -> its number of experts
  std::map<std::string, std::string> metadata;  // of the one file; empty where another program has divided it
};

// path: the index, or its folder. Raises Error for a damaged one.
WeightFileIndex read_shard_index(const std::string& path);

}  // namespace sparsight
