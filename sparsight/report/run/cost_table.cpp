#include "sparsight/report/run/cost_table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "sparsight/report/format.h"

namespace sparsight {
namespace {

using Line = std::array<std::string, 7>;

Line table_line(const PartCost& part) {
  const Cost& c = part.cost;
  return {part.part + (c.assumed ? " *" : ""),
          part.output,
          grouped(c.parameters),
          grouped(c.active_parameters),
          grouped(c.weight_bytes),
          grouped(c.multiply_adds),
          grouped(c.elementwise)};
}

}  // namespace

std::string cost_table(const std::vector<PartCost>& parts, const CostConvention& convention) {
  const Cost all = total(parts);
  std::vector<Line> lines{{"part", "output", "parameters", "active", "weight bytes", "multiply-adds", "elementwise"}};
  for (const PartCost& part : parts) lines.push_back(table_line(part));
  lines.push_back(table_line({"all", all}));
  std::array<size_t, 7> width{};
  for (const Line& line : lines)
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::ostringstream text;
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      text << "  " << (i < 2 ? std::left : std::right) << std::setw(static_cast<int>(width[i])) << line[i];
    text << "\n";
  }
  text << "  FLOPs per image: " << grouped(flops(all, convention)) << " (" << convention.name << ": "
       << convention.summary << ")\n";
  if (all.assumed)
    text << "  * reports no cost of its own: counted as if each of its matrices were applied once to each of its "
            "inputs\n";
  return text.str();
}

}  // namespace sparsight
