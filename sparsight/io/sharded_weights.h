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

#include "sparsight/io/safetensors_parts.h"
#include "sparsight/io/safetensors_reader.h"
#include "sparsight/io/shard_index.h"

namespace sparsight {

// Divides a file into a new folder of `files` files. Raises Error where the file is damaged or something is at
// `folder`, UsageError where there are fewer experts in a layer than files.
void shard_weights(const std::string& file, const std::string& folder, int64_t files);

// Weights in several files. Raises Error, with the name, where a file, an expert or another tensor is missing, in two
// files, or in none of the index.
class ShardedWeights {
 public:
  // folder: or its index.
  explicit ShardedWeights(const std::string& folder);

  // The tensors of the one file, without their places, and its metadata.
  const SafetensorsHeader& header() const { return header_; }
  // The tensor of this name, of all experts.
  at::Tensor read(const std::string& name) const;
  at::Tensor read(const TensorEntry& entry) const;  // of the header
  // What read_safetensors() of the one file returns.
  TensorFile read_all(const std::function<bool(const std::string&)>& wanted, const TensorCut& cut = nullptr) const;

 private:
  void find_tensors();
  void open_shard(const std::string& file);
  void find_experts();
  void read_into(const std::string& name, void* to) const;  // name: of a file

  WeightFileIndex index_;
  std::vector<SafetensorsReader> shards_;
  std::map<std::string, TensorEntry> entries_;  // tensor of a file
  SafetensorsHeader header_;
};

// Writes the one file. Only one tensor at a time is in memory.
void merge_weights(const std::string& folder, const std::string& file, Existing existing = Existing::replace);

}  // namespace sparsight
