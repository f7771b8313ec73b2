// A heat map of experts: what each of some classes, domains or parts sent to each expert. A pure function of counts.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/charts/charts.h"

namespace sparsight {

// What the map's numbers mean.
struct ExpertMapWords {
  std::string rows;                       // "classes", of the caption
  std::string row;                        // "class", of a row
  std::string units;                      // what the cells count: "assignments"
  bool numbered = false;                  // names of rows begin with their number
  std::vector<std::string> experts = {};  // names of the columns, all different; or none: their numbers
};

// counts: [K][E] numbers; entries that are none count as 0. names: of the K rows, or fewer; the others are numbers.
// Rows without counts are left out, and of more than 256 experts all but the busiest. The caption names rows and
// columns and says how many were counted. The specification is null if nothing was.
Chart expert_map_chart(const std::string& title, const Json& counts, const std::vector<std::string>& names,
                       const ExpertMapWords& words);

}  // namespace sparsight
