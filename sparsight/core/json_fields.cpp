#include "sparsight/core/json_fields.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace sparsight {
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

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
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
