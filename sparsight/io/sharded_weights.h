// The tensors of one safetensors file in several, as Hugging Face names them, so that other programs read them too:
//
//   model-00001-of-00004.safetensors ... and model.safetensors.index.json, which says in which file each tensor is
//
// Experts are shared out over the files: tensor "blocks.1.mlp.experts.w1" [E,...] becomes "blocks.1.mlp.experts.0.w1"
// ... "blocks.1.mlp.experts.<E-1>.w1", those of file k successive ones. Everything else is in the first file. The index
// also has the metadata of the one file, so that a checkpoint comes back whole, and how many experts each layer has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sparsight/io/safetensors.h"

namespace sparsight {

inline constexpr const char* kShardIndex = "model.safetensors.index.json";

// Whether `path` is a folder with an index, or an index.
bool is_sharded(const std::string& path);

// Divides a file into a new folder of `files` files. Raises Error where the file is damaged or something is at
// `folder`, UsageError where there are fewer experts in a layer than files.
void shard_weights(const std::string& file, const std::string& folder, int64_t files);

// Weights in several files. Raises Error, with the name, where an expert or another tensor is missing, in two files, or
// in none of the index.
class ShardedWeights {
 public:
  // folder: or its index.
  explicit ShardedWeights(const std::string& folder);

  // The tensors of the one file, without their places, and its metadata.
  const SafetensorsHeader& header() const { return header_; }
  // The tensor of this name, of all experts.
  at::Tensor read(const std::string& name) const;

 private:
  struct Shard {
    std::string path;
    SafetensorsHeader header;
  };
  void read_index();
  void find_tensors();
  void find_experts();

  std::string folder_;
  std::map<std::string, int64_t> experts_;      // layer -> its number of experts
  std::map<std::string, size_t> shard_of_;      // tensor of a file -> file
  std::map<std::string, TensorEntry> entries_;  // tensor of a file
  std::vector<std::string> order_;              // of the index
  std::vector<Shard> shards_;
  SafetensorsHeader header_;
};

// Writes the one file. Only one tensor at a time is in memory.
void merge_weights(const std::string& folder, const std::string& file);

}  // namespace sparsight
