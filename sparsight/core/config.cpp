#include "sparsight/core/config.h"

#include <fstream>

#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"

namespace sparsight {
namespace {

const SectionVariant& chosen_variant(const Section& section, const Json& table) {
  if (section.default_variant.empty()) return section.variants.front();
  std::string name = section.default_variant;
  if (table.contains("name")) {
    if (!table["name"].is_string()) fail_usage(section.name, ".name must be a text, got ", table["name"].dump());
    name = table["name"].get<std::string>();
  }
  std::vector<std::string> names;
  for (const SectionVariant& variant : section.variants) {
    if (variant.name == name) return variant;
    names.push_back(variant.name);
  }
  fail_usage("unknown ", section.name, ".name \"", printable(name), "\"; did you mean \"", nearest_name(name, names),
             "\"? (known: ", join(names), ")");
}

}  // namespace

Config Config::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();  // an empty file is all defaults
  if (!file.is_open() || file.bad())
    fail("cannot read the configuration ", path, "; check that it is a file that you may read");
  return from_text(text.str(), path);
}

Config Config::from_text(const std::string& text, const std::string& origin) {
  TomlDocument document = parse_toml(text, origin);
  Config config;
  config.tree_ = Json::object();
  for (const auto& [section, table] : document.tree.items()) {
    if (!table.is_object())
      fail_usage(origin, ":", document.lines[section], ": \"", printable(section),
                 "\" stands outside any [section]; move it into one");
    for (const auto& [key, value] : table.items()) {
      const std::string full = section + "." + key;
      config.set(section, key, value, cat(origin, ":", document.lines[full]));
    }
  }
  return config;
}

void Config::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  const size_t dot = assignment.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals || dot == 0 || dot + 1 == equals)
    fail_usage("--set takes section.key=value (for example train.epochs=3), got \"", assignment, "\"");
  set(assignment.substr(0, dot), assignment.substr(dot + 1, equals - dot - 1),
      parse_toml_value(assignment.substr(equals + 1)), "--set");
}

void Config::set(const std::string& section, const std::string& key, Json value, const std::string& origin) {
  tree_[section][key] = std::move(value);
  origins_[section + "." + key] = origin;
}

std::string Config::origin(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? "default" : found->second;
}

Config Config::with_present_names(const std::vector<Section>& sections) const {
  Config renamed = *this;
  for (const Section& section : sections)
    for (const auto& [key, old_name] : section.formerly) {
      const size_t dot = old_name.find('.');
      const std::string old_section = old_name.substr(0, dot), old_key = old_name.substr(dot + 1);
      if (!tree_.contains(old_section) || !tree_[old_section].contains(old_key)) continue;
      if (!renamed.tree_.contains(section.name) || !renamed.tree_[section.name].contains(key))
        renamed.set(section.name, key, tree_[old_section][old_key], origin(old_name));
      renamed.tree_[old_section].erase(old_key);
    }
  return renamed;
}

Json resolve(const Config& given, const std::vector<Section>& sections) {
  const Config config = given.with_present_names(sections);
  std::vector<std::string> names;
  for (const Section& section : sections) names.push_back(section.name);
  for (const auto& [name, table] : config.tree().items()) {
    bool known = false;
    for (const std::string& section : names) known = known || section == name;
    if (!known)
      fail_usage("unknown section [", printable(name), "]; did you mean [", nearest_name(name, names),
                 "]? (known: ", join(names), ")");
  }
  Json resolved = Json::object();
  for (const Section& section : sections) {
    Json table = config.tree().value(section.name, Json::object());
    const SectionVariant& variant = chosen_variant(section, table);
    Json& target = resolved[section.name] = Json::object();
    if (!section.default_variant.empty()) {
      target["name"] = variant.name;
      table.erase("name");
    }
    variant.describe([&](OptionSet& set) {
      assign(set, table, section.name);
      target.update(values(set));
    });
  }
  return resolved;
}

}  // namespace sparsight
