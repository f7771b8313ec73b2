#include "sparsight/report/cost_table.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "sparsight/report/format.h"

namespace sparsight {

std::string cost_table(const std::vector<PartCost>& parts) {
  std::vector<PartCost> lines = parts;
  lines.push_back({"all", total(parts)});
  int part = 4, output = 6, parameters = 10, multiply_adds = 13;
  for (const PartCost& line : lines) {
    part = std::max(part, static_cast<int>(line.part.size()));
    output = std::max(output, static_cast<int>(line.output.size()));
    parameters = std::max(parameters, static_cast<int>(grouped(line.cost.parameters).size()));
    multiply_adds = std::max(multiply_adds, static_cast<int>(grouped(line.cost.multiply_adds).size()));
  }
  std::ostringstream text;
  const auto add = [&](const std::string& a, const std::string& b, const std::string& c, const std::string& d) {
    text << "  " << std::left << std::setw(part) << a << "  " << std::setw(output) << b << "  " << std::right
         << std::setw(parameters) << c << "  " << std::setw(multiply_adds) << d << "\n";
  };
  add("part", "output", "parameters", "multiply-adds");
  for (const PartCost& line : lines)
    add(line.part, line.output, grouped(line.cost.parameters), grouped(line.cost.multiply_adds));
  return text.str();
}

}  // namespace sparsight
