// Comma-separated values as defined by RFC 4180: fields may be quoted, and then contain commas, doubled quotes and line
// ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

struct CsvRow {
  int64_t line = 0;  // where it starts, from 1
  std::vector<std::string> fields;
};

// Skips empty lines and a byte order mark. Raises Error for a quote that is not closed or that is inside a plain
// field.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

}  // namespace sparsight
