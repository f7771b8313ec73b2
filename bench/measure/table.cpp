#include "bench/measure/table.h"

#include <cstdio>

namespace sparsight::bench {

void print_row(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) std::printf("| %s ", cell.c_str());
  std::printf("|\n");
  std::fflush(stdout);
}

void print_header(const std::vector<std::string>& columns) {
  std::printf("\n");
  print_row(columns);
  print_row(std::vector<std::string>(columns.size(), "--:"));
}

std::string milliseconds(double seconds) {
  const double ms = 1e3 * seconds;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
  return text;
}

std::string whole(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

}  // namespace sparsight::bench
