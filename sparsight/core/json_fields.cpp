#include "sparsight/core/json_fields.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace sparsight {
namespace {

constexpr int kMaxNesting = 100;

bool is_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMaxNesting) return true;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::string_view text) {
  return is_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const Json& member(const Json& record, const std::string& key) {
  static const Json nothing;
  if (!record.is_object()) return nothing;
  const auto found = record.find(key);
  return found == record.end() ? nothing : *found;
}

std::optional<double> number(const Json& record, const std::string& key) {
  const Json& value = member(record, key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

std::string text(const Json& record, const std::string& key) {
  const Json& value = member(record, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  if (!list.is_array()) return values;
  for (const Json& entry : list) {
    const double value = entry.is_number() ? entry.get<double>() : 0;
    values.push_back(std::isfinite(value) ? value : 0);
  }
  return values;
}

}  // namespace sparsight
