// TOML text to JSON values and back. The only place that knows the TOML library.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

struct TomlDocument {
  Json tree;                         // tables, lists, strings, integers, numbers, bools
  std::map<std::string, int> lines;  // "train.epochs" -> line, for every key outside lists
};

// `origin` (a file name) appears in errors. Syntax errors, dates and non-UTF-8 text raise UsageError with the line.
TomlDocument parse_toml(const std::string& text, const std::string& origin);

// Parses one value as in `key = value`; a bare word that is not a TOML value is read as a string.
Json parse_toml_value(const std::string& text);

// The values of "1,[2,3],\"a,b\"", each as text.
std::vector<std::string> split_toml_values(const std::string& text);

// Two-level trees ({section: {key: value}}) as TOML that parse_toml reads back unchanged. Floats keep every digit.
std::string to_toml(const Json& tree);
std::string to_toml_value(const Json& value);

}  // namespace sparsight
