#include "sparsight/io/sharded_weights.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/io/safetensors_parts.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/io/sharded_names.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

std::string shard_name(int64_t shard, int64_t shards) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05d-of-%05d.safetensors", static_cast<int>(shard + 1),
                static_cast<int>(shards));
  return name.data();
}

at::Tensor without_values(const std::vector<int64_t>& shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).device(at::kMeta));
}

at::Tensor read_one(const std::string& path, const std::string& name) {
  const NamedTensors found = read_safetensors(path, [&](const std::string& n) { return n == name; }).tensors;
  if (found.empty()) fail(printable(path), " has no tensor ", printable(name));
  return found.front().second;
}

// Layer -> experts: the length of the first axis, where all weights of the layer agree.
std::map<std::string, int64_t> count_experts(const SafetensorsHeader& header) {
  std::map<std::string, int64_t> experts;
  for (const TensorEntry& entry : header.tensors) {
    const auto name = parse_stacked_name(entry.name);
    if (!name || entry.name.find('/') != std::string::npos) continue;  // training state has the shapes of weights
    const int64_t count = entry.shape.empty() ? 0 : entry.shape.front();
    const auto [known, fresh] = experts.emplace(name->layer, count);
    if (!fresh && known->second != count) known->second = 0;
  }
  std::erase_if(experts, [](const auto& entry) { return entry.second == 0; });
  return experts;
}

// A tensor of a shard, and where its values are.
struct Piece {
  std::string name, from;
  int64_t expert = -1;  // -1: all of the tensor `from`
  at::Tensor shape;
};

// In the order of the file; experts of a tensor one after the other.
std::vector<std::vector<Piece>> divide(const SafetensorsHeader& header, const std::map<std::string, int64_t>& experts,
                                       int64_t files) {
  std::vector<std::vector<Piece>> shards(static_cast<size_t>(files));
  for (const TensorEntry& entry : header.tensors) {
    const auto name = parse_stacked_name(entry.name);
    const auto layer = name ? experts.find(name->experts_path()) : experts.end();
    if (layer == experts.end() || entry.shape.empty() || entry.shape.front() != layer->second) {
      shards.front().push_back({entry.name, entry.name, -1, without_values(entry.shape, entry.type)});
      continue;
    }
    const std::vector<int64_t> shape(entry.shape.begin() + 1, entry.shape.end());
    for (int64_t e = 0; e < layer->second; ++e)
      shards[static_cast<size_t>(e * files / layer->second)].push_back(
          {name->of_expert(e), entry.name, e, without_values(shape, entry.type)});
  }
  return shards;
}

}  // namespace

void shard_weights(const std::string& file, const std::string& folder, int64_t files) {
  const SafetensorsHeader header = read_safetensors_header(file);
  const std::map<std::string, int64_t> experts = count_experts(header);
  if (experts.empty() && files > 1) fail_usage(printable(file), " has no experts to share out over ", files, " files");
  for (const auto& [layer, count] : experts)
    if (count < files)
      fail_usage(printable(layer), " has ", count, " experts, too few for ", files, " files; choose --files ", count,
                 " or less");
  // All checksums, before parts are read without.
  read_safetensors(file, nullptr, [](const std::string&, const at::Tensor&) { return at::Tensor(); });
  const SafetensorsRowReader rows(file);
  AtomicFolder out(folder);
  Json index{{"metadata", {{"total_size", 0}, {"experts", experts}, {"safetensors", header.metadata}}},
             {"weight_map", Json::object()}};
  int64_t bytes = 0;
  const auto shards = divide(header, experts, files);
  for (int64_t s = 0; s < files; ++s) {
    const std::vector<Piece>& pieces = shards[static_cast<size_t>(s)];
    const std::string name = shard_name(s, files);
    TensorFile shard{{}, {{"format", "pt"}}};  // which transformers asks for
    for (const Piece& piece : pieces) {
      shard.tensors.emplace_back(piece.name, piece.shape);
      index["weight_map"][piece.name] = name;
      bytes += static_cast<int64_t>(piece.shape.nbytes());
    }
    write_safetensors(out.aside() + "/" + name, shard, [&](size_t i) {
      const Piece& piece = pieces[i];
      return piece.expert < 0 ? read_one(file, piece.from)
                              : rows.rows(piece.from, piece.expert, piece.expert + 1).squeeze(0);
    });
  }
  index["metadata"]["total_size"] = bytes;
  write_file_atomically(out.aside() + "/" + kShardIndex, index.dump(2) + "\n");
  out.commit();
}

namespace {

// "expert 3 of blocks.1.mlp.experts.w1", or "tensor head.weight".
std::string described(const std::string& name) {
  const auto single = parse_single_name(name);
  if (!single) return "tensor " + printable(name);
  return cat("expert ", single->expert, " of ", printable(single->tensor.of_all()));
}

}  // namespace

ShardedWeights::ShardedWeights(const std::string& folder) : index_(read_shard_index(folder)) {
  header_.metadata = index_.metadata;
  find_tensors();
  find_experts();
}

void ShardedWeights::find_tensors() {
  for (const std::string& file : index_.files) open_shard(file);
  for (size_t s = 0; s < shards_.size(); ++s)
    for (const TensorEntry& entry : shards_[s].header().tensors) {
      const auto place = index_.file_of.find(entry.name);
      if (place == index_.file_of.end())
        fail(described(entry.name), " in ", printable(shards_[s].path()), " is foreign: ", printable(index_.name),
             " does not name it");
      if (!entries_.emplace(entry.name, entry).second || place->second != s)
        fail(described(entry.name), " is doubled: it is in ", printable(shards_[place->second].path()), " and in ",
             printable(shards_[s].path()));
    }
  for (const std::string& name : index_.tensors)
    if (!entries_.contains(name))
      fail(described(name), " is missing: it is not in ", printable(shards_[index_.file_of.at(name)].path()));
}

void ShardedWeights::open_shard(const std::string& file) {
  const std::string path = index_.folder + "/" + file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const auto first = std::ranges::find_if(
        index_.tensors, [&](const std::string& name) { return index_.files[index_.file_of.at(name)] == file; });
    fail(printable(path), " is missing: ", printable(index_.name), " says that it has ", described(*first),
         "; copy all files of the index");
  }
  shards_.emplace_back(path);
}

void ShardedWeights::find_experts() {
  std::map<std::string, int64_t> found;  // tensor of all experts -> how many it has
  for (const std::string& name : index_.tensors) {
    const TensorEntry& entry = entries_.at(name);
    const auto single = parse_single_name(name);
    const auto layer = single ? index_.experts.find(single->tensor.experts_path()) : index_.experts.end();
    if (layer == index_.experts.end()) {
      header_.tensors.push_back({name, entry.type, entry.shape});
      continue;
    }
    if (single->expert >= layer->second)
      fail(described(name), " is foreign: the layer has ", layer->second, " experts");
    if (found[single->tensor.of_all()]++ > 0) continue;
    TensorEntry all{single->tensor.of_all(), entry.type, entry.shape};
    all.shape.insert(all.shape.begin(), layer->second);
    header_.tensors.push_back(all);
  }
  for (const TensorEntry& entry : header_.tensors) {
    if (!found.contains(entry.name)) continue;
    const ExpertTensorName name = *parse_stacked_name(entry.name);
    for (int64_t e = 0; e < entry.shape.front(); ++e) {
      const auto one = entries_.find(name.of_expert(e));
      if (one == entries_.end()) fail(described(name.of_expert(e)), " is missing: no file has it");
      if (!std::equal(one->second.shape.begin(), one->second.shape.end(), entry.shape.begin() + 1, entry.shape.end()) ||
          one->second.type != entry.type)
        fail(described(name.of_expert(e)), " has another shape or type than the other experts");
    }
  }
}

void ShardedWeights::read_into(const std::string& name, void* to) const {
  shards_[index_.file_of.at(name)].read(entries_.at(name), to);
}

at::Tensor ShardedWeights::read(const std::string& name) const {
  const auto entry = std::ranges::find(header_.tensors, name, &TensorEntry::name);
  if (entry == header_.tensors.end()) fail(printable(index_.folder), " has no tensor ", printable(name));
  return read(*entry);
}

at::Tensor ShardedWeights::read(const TensorEntry& entry) const {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
  if (entries_.contains(entry.name)) {
    read_into(entry.name, tensor.data_ptr());
    return tensor;
  }
  const ExpertTensorName name = *parse_stacked_name(entry.name);
  for (int64_t e = 0; e < entry.shape.front(); ++e) {
    at::Tensor expert = tensor.select(0, e);
    read_into(name.of_expert(e), expert.data_ptr());
  }
  return tensor;
}

TensorFile ShardedWeights::read_all(const std::function<bool(const std::string&)>& wanted, const TensorCut& cut) const {
  TensorFile file{{}, header_.metadata};
  for (const TensorEntry& entry : header_.tensors) {
    if (wanted && !wanted(entry.name)) continue;
    at::Tensor tensor = read(entry);
    file.tensors.emplace_back(entry.name, cut ? cut(entry.name, tensor) : std::move(tensor));
  }
  return file;
}

void merge_weights(const std::string& folder, const std::string& file, Existing existing) {
  const ShardedWeights weights(folder);
  TensorFile merged{{}, weights.header().metadata};
  for (const TensorEntry& entry : weights.header().tensors)
    merged.tensors.emplace_back(entry.name, without_values(entry.shape, entry.type));
  write_safetensors(
      file, merged, [&](size_t i) { return weights.read(weights.header().tensors[i]); }, existing);
}

}  // namespace sparsight
