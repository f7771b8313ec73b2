#include "sparsight/core/toml.h"

#include <cmath>
#include <cstdio>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

Json to_json(const toml::node& node, const std::string& key, const std::string& origin,
             std::map<std::string, int>* lines) {
  if (lines) (*lines)[key] = static_cast<int>(node.source().begin.line);
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [name, child] : *table) {
      const std::string text(name.str());
      object[text] = to_json(child, key.empty() ? text : key + "." + text, origin, lines);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const auto& child : *array) list.push_back(to_json(child, key, origin, nullptr));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  fail_usage(origin, ": ", key, " must be a text, number, bool, list or table, got a date or time");
}

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

bool is_bare_key(const std::string& key) {
  if (key.empty()) return false;
  for (const char c : key)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') return false;
  return true;
}

std::string key_text(const std::string& key) { return is_bare_key(key) ? key : quoted(key); }

}  // namespace

TomlDocument parse_toml(const std::string& text, const std::string& origin) {
  TomlDocument document;
  try {
    const toml::table table = toml::parse(text);
    document.tree = to_json(table, "", origin, &document.lines);
  } catch (const toml::parse_error& error) {
    fail_usage(origin, ":", error.source().begin.line, ": ", error.description());
  }
  return document;
}

Json parse_toml_value(const std::string& text) {
  try {
    const toml::table table = toml::parse("value = " + text);
    if (table.size() == 1) return to_json(*table.get("value"), "value", "value", nullptr);
  } catch (const toml::parse_error&) {
  }
  return text;
}

std::string to_toml_value(const Json& value) {
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, child] : value.items())
      text += (text.size() > 1 ? ", " : " ") + key_text(key) + " = " + to_toml_value(child);
    return text + " }";
  }
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& child : value) text += (text.size() > 1 ? ", " : "") + to_toml_value(child);
    return text + "]";
  }
  if (value.is_string()) return quoted(value.get<std::string>());
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  }
  return value.dump();
}

std::string to_toml(const Json& tree) {
  std::string text;
  for (const auto& [section, table] : tree.items()) {
    if (!text.empty()) text += "\n";
    text += "[" + key_text(section) + "]\n";
    for (const auto& [key, value] : table.items()) text += key_text(key) + " = " + to_toml_value(value) + "\n";
  }
  return text;
}

}  // namespace sparsight
