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

// Reads one row after another, so that a file of millions of rows takes no more memory than its text. Skips empty lines
// and a byte order mark.
class CsvReader {
 public:
  // text: must outlive the reader. name: what errors call it.
  CsvReader(std::string_view text, std::string name);
  // The next row; null at the end. It is valid until the next call. Raises Error for a quote that is not closed or that
  // is inside a plain field.
  const CsvRow* next();

 private:
  std::string quoted_field();
  std::string plain_field();

  std::string_view text_;
  std::string name_;
  size_t at_ = 0;
  int64_t line_ = 1;
  CsvRow row_;
};

// All rows of a CsvReader.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

}  // namespace sparsight
