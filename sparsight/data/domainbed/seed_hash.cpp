#include "sparsight/data/domainbed/seed_hash.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/hash.h"

namespace sparsight {
namespace {

using nlohmann::ordered_json;

std::string python_items(const ordered_json& values);

std::string python_value(const ordered_json& value) {
  if (value.is_array()) return "[" + python_items(value) + "]";
  if (value.is_string()) return "'" + value.get<std::string>() + "'";
  SPARSIGHT_CHECK(value.is_number_integer());
  return value.dump();
}

std::string python_items(const ordered_json& values) {
  std::string text;
  for (const ordered_json& value : values) text += (text.empty() ? "" : ", ") + python_value(value);
  return text;
}

}  // namespace

std::string python_tuple(const ordered_json& values) {
  return "(" + python_items(values) + (values.size() == 1 ? ",)" : ")");
}

uint32_t seed_hash(const ordered_json& values) {
  Hasher md5("md5");
  const std::string text = python_tuple(values);
  md5.add(text.data(), text.size());
  const std::string hex = md5.hex();  // the last 31 bits of its 128
  return static_cast<uint32_t>(std::stoul(hex.substr(hex.size() - 8), nullptr, 16)) & 0x7FFFFFFF;
}

}  // namespace sparsight
