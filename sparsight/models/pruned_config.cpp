#include "sparsight/models/pruned_config.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/block_list.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// "blocks." and 3 of "blocks.3.mlp".
struct NumberedPath {
  std::string before;
  int64_t number = 0;
};

std::optional<NumberedPath> numbered_path(const std::string& path) {
  constexpr size_t kMaxDigits = 9;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part.size() <= kMaxDigits && part.find_first_not_of("0123456789") == std::string::npos)
      return NumberedPath{path.substr(0, begin), std::stoll(part)};
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

int64_t count_blocks(const std::string& layer, const std::vector<std::string>& modules) {
  const auto own = numbered_path(layer);
  int64_t count = 0;
  for (const std::string& module : modules)
    if (const auto other = numbered_path(module); own && other && other->before == own->before)
      count = std::max(count, other->number + 1);
  return count;
}

Json config_with_experts(Json config, const std::map<std::string, int64_t>& experts, int64_t blocks) {
  SPARSIGHT_CHECK(!experts.empty());
  int64_t fewest = experts.begin()->second, most = fewest;
  for (const auto& [path, count] : experts) fewest = std::min(fewest, count), most = std::max(most, count);
  Json& moe = config["moe"];
  Json entries = moe.value("layer", Json::array());
  moe["experts"] = most;
  if (fewest == most) {
    for (Json& entry : entries)
      if (entry.contains("experts")) entry["experts"] = most;
    moe["layer"] = entries;
    return config;
  }
  for (const auto& [path, count] : experts) {
    const auto block = numbered_path(path);
    if (!block || block->before != "blocks.")  // others count in another way, as ConvNeXt over all its stages
      fail("the layers would be left with ", fewest, " to ", most,
           " experts, and prune can say so in [[moe.layer]] for ", "layers named blocks.N alone, unlike ", path,
           "; remove as many experts from each layer");
  }
  std::vector<std::vector<int64_t>> lists;
  for (const Json& entry : entries) lists.push_back(entry.at("blocks").get<std::vector<int64_t>>());
  const std::vector<int64_t> entry_of = list_of_each_block(lists, blocks, "[[moe.layer]]");
  Json changed = Json::array();
  for (const auto& [path, count] : experts) {
    const auto block = numbered_path(path);
    SPARSIGHT_CHECK(block && block->number < blocks);
    const int64_t earlier = entry_of[static_cast<size_t>(block->number)];
    Json entry = earlier < 0 ? Json::object() : entries[static_cast<size_t>(earlier)];
    entry["blocks"] = Json::array({block->number});
    entry["experts"] = count;
    changed.push_back(std::move(entry));
  }
  moe["layer"] = std::move(changed);
  return config;
}

}  // namespace sparsight
