#include "sparsight/data/shards/shard_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_map>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxLabels = 1 << 20;

std::optional<int64_t> label_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string place_of(const ShardIndex& shard, const ShardImage& image) {
  return cat(shard.shard, "/", printable(image.name));
}

template <class Visit>
void for_each_image(const std::vector<ShardIndex>& shards, Visit visit) {
  for (const ShardIndex& shard : shards)
    for (const ShardImage& image : shard.images) visit(shard, image);
}

// Nothing unless all labels are numbers.
std::optional<std::vector<std::string>> numbered_classes(const std::vector<ShardIndex>& shards) {
  int64_t largest = 0;
  bool all = true;
  for_each_image(shards, [&](const ShardIndex&, const ShardImage& image) {
    const auto number = all ? label_number(image.label) : std::nullopt;
    all = number.has_value();
    if (all) largest = *number < 0 ? kMaxLabels : std::max(largest, *number);
  });
  if (!all) return std::nullopt;
  for_each_image(shards, [&](const ShardIndex& shard, const ShardImage& image) {
    const int64_t number = *label_number(image.label);
    if (number < 0 || number >= kMaxLabels)
      fail(place_of(shard, image), ": label ", number, " is out of range; labels are 0 to ", kMaxLabels - 1,
           ", or names");
  });
  std::vector<std::string> names;
  for (int64_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> occurring_names(const std::vector<ShardIndex>& shards) {
  std::set<std::string> names;
  for_each_image(shards, [&](const ShardIndex& shard, const ShardImage& image) {
    names.insert(image.label);
    if (std::ssize(names) > kMaxLabels)
      fail(place_of(shard, image), ": the shards have more than ", kMaxLabels, " classes");
  });
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::string> parse_class_names(std::string_view text, const std::string& name) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line(text.substr(begin, end - begin));
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) fail(name, ":", names.size() + 1, " is empty; each line is the name of a class");
    if (!seen.insert(line).second) fail(name, ":", names.size() + 1, ": class ", printable(line), " is there twice");
    names.push_back(std::move(line));
    begin = end + 1;
  }
  if (names.empty()) fail(name, " is empty; each line is the name of a class");
  return names;
}

ShardLabels resolve_labels(const std::vector<ShardIndex>& shards, const std::vector<std::string>& names) {
  ShardLabels result;
  bool numbers = true;  // may be places of names
  std::vector<std::string> classes = names;
  if (classes.empty()) {
    auto numbered = numbered_classes(shards);
    numbers = numbered.has_value();
    classes = numbers ? std::move(*numbered) : occurring_names(shards);
  }
  std::unordered_map<std::string, int32_t> label_of;
  for (size_t i = 0; i < classes.size(); ++i) label_of[classes[i]] = static_cast<int32_t>(i);
  for (const ShardIndex& shard : shards) {
    std::vector<int32_t>& labels = result.labels.emplace_back();
    for (const ShardImage& image : shard.images) {
      const auto number = numbers ? label_number(image.label) : std::nullopt;
      const auto named = label_of.find(image.label);
      if (number && (*number < 0 || *number >= std::ssize(classes)))
        fail(place_of(shard, image), ": label ", *number, " is out of range; classes.txt has ", classes.size(),
             " classes, numbered from 0");
      if (!number && named == label_of.end())
        fail(place_of(shard, image), ": classes.txt has no class \"", printable(image.label), "\"",
             did_you_mean(nearest_name(image.label, classes)));
      labels.push_back(number ? static_cast<int32_t>(*number) : named->second);
    }
  }
  result.classes = printable_names(classes);
  return result;
}

}  // namespace sparsight
