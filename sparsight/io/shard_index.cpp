#include "sparsight/io/shard_index.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{1} << 30;

bool is_index(const std::string& path) { return path.ends_with(".safetensors.index.json"); }

Json object_member(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) && json.at(name).is_object() ? json.at(name) : Json::object();
}

void read_weight_map(WeightFileIndex& index, const Json& map, const std::string& path) {
  std::map<std::string, size_t> files;
  for (const auto& [name, file] : map.items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      fail(printable(path), ": the file of ", printable(name), " is ", shown(file),
           ", not the name of a file beside it");
    const auto [found, fresh] = files.emplace(file.get<std::string>(), index.files.size());
    if (fresh) index.files.push_back(found->first);
    index.file_of[name] = found->second;
    index.tensors.push_back(name);
  }
}

}  // namespace

bool is_sharded(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && (is_index(path) || fs::exists(fs::path(path) / kShardIndex, ignored));
}

WeightFileIndex read_shard_index(const std::string& path) {
  WeightFileIndex index;
  index.folder = is_index(path) ? fs::path(path).parent_path().string() : path;
  index.name = is_index(path) ? fs::path(path).filename().string() : kShardIndex;
  if (index.folder.empty()) index.folder = ".";
  const std::string file = (fs::path(index.folder) / index.name).string();
  const Json json = parse_json_object(read_file(file, kMaxIndexBytes), printable(file));
  const Json map = json.value("weight_map", Json());
  if (!map.is_object()) fail(printable(file), " has no weight_map, which says where each tensor is");
  read_weight_map(index, map, file);
  const Json metadata = object_member(json, "metadata"), experts = object_member(metadata, "experts"),
             texts = object_member(metadata, "safetensors");
  for (const auto& [layer, count] : experts.items())
    if (count.is_number_integer()) index.experts[layer] = count.get<int64_t>();
  for (const auto& [key, text] : texts.items())
    if (text.is_string()) index.metadata[key] = text.get<std::string>();
  return index;
}

}  // namespace sparsight
