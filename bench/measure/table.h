// Prints tables in Markdown, row by row, so that a long measurement shows what it has.
#pragma once

#include <string>
#include <vector>

namespace sparsight::bench {

void print_header(const std::vector<std::string>& columns);
void print_row(const std::vector<std::string>& cells);

std::string milliseconds(double seconds);  // three digits: "0.136", "4.47", "173"
std::string whole(double value);           // "206"

}  // namespace sparsight::bench
