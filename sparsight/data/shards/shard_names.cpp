#include "sparsight/data/shards/shard_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr size_t kMaxDigits = 12;
constexpr size_t kMaxBraces = 8;
constexpr size_t kMaxNameBytes = size_t{1} << 26;  // of all names that a pattern stands for

std::vector<std::string> split_at(const std::string& text, const std::string& mark) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(mark, begin)) != std::string::npos; begin = end + mark.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

std::optional<uint64_t> range_end(const std::string& digits) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.size() > kMaxDigits || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// The choices of "000..002" or "a,b"; none for anything else.
std::vector<std::string> choices_of(const std::string& inside) {
  if (const std::vector<std::string> ends = split_at(inside, ".."); ends.size() == 2) {
    const auto first = range_end(ends[0]), last = range_end(ends[1]);
    if (!first || !last || *last < *first || *last - *first >= kMaxShards) return {};
    std::vector<std::string> numbers;
    for (uint64_t i = *first; i <= *last; ++i) {
      const std::string digits = std::to_string(i);
      numbers.push_back(std::string(ends[0].size() - std::min(ends[0].size(), digits.size()), '0') + digits);
    }
    return numbers;
  }
  const std::vector<std::string> words = split_at(inside, ",");
  return words.size() > 1 ? words : std::vector<std::string>{};
}

std::vector<std::string> expand_one(const std::string& pattern, const std::string& setting) {
  std::vector<std::string> names{""};
  size_t at = 0;
  for (size_t braces = 0;; ++braces) {
    const size_t open = pattern.find('{', at), close = pattern.find('}', at);
    for (std::string& name : names) name += pattern.substr(at, std::min(open, close) - at);
    if (open == std::string::npos && close == std::string::npos) return names;
    const std::vector<std::string> choices = close < open || close == std::string::npos
                                                 ? std::vector<std::string>{}
                                                 : choices_of(pattern.substr(open + 1, close - open - 1));
    if (choices.empty() || braces == kMaxBraces)
      fail_usage(setting, " = \"", printable(pattern),
                 "\" has braces that are no range such as {000..009} and no list such as {a,b}");
    if (names.size() > std::min(kMaxShards, kMaxNameBytes / pattern.size()) / choices.size())
      fail_usage(setting, " = \"", printable(pattern), "\" names more than ", kMaxShards,
                 " shards, or names too long for so many");
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& choice : choices) longer.push_back(name + choice);
    names = std::move(longer);
    at = close + 1;
  }
}

}  // namespace

bool is_shard_name(const std::string& name) {
  if (name.empty() || name.size() > 4096 || name[0] == '/' || printable(name) != name) return false;
  for (const std::string& part : split_at(name, "/"))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

std::vector<std::string> expand_shards(const std::string& pattern, const std::string& setting) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string& part : split_at(pattern, "::"))
    for (std::string& name : expand_one(part, setting)) {
      if (!is_shard_name(name))
        fail_usage(setting, " names \"", printable(name),
                   "\"; shards are paths below data.root, such as train-000.tar");
      if (!seen.insert(name).second) fail_usage(setting, " names ", name, " twice");
      if (names.size() == kMaxShards) fail_usage(setting, " names more than ", kMaxShards, " shards");
      names.push_back(std::move(name));
    }
  return names;
}

}  // namespace sparsight
