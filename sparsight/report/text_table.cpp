#include "sparsight/report/text_table.h"

#include <algorithm>

#include "sparsight/report/escape_names.h"

namespace sparsight {
namespace {

// Terminal columns, counted as code points, which is correct for everything in these tables.
size_t columns(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

std::string aligned(const Rows& rows) {
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns(row[i]));
  std::string lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += "  " + row[i] + std::string(width[i] - columns(row[i]), ' ');
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return lines;
}

std::string markdown(const Rows& rows) {
  std::string lines;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& cell : rows[i]) lines += "| " + markdown_text(cell) + " ";
    lines += "|\n";
    if (i == 0) {
      for (size_t c = 0; c < rows[0].size(); ++c) lines += "|---";
      lines += "|\n";
    }
  }
  return lines;
}

}  // namespace sparsight
