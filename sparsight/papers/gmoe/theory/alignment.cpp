#include "sparsight/papers/gmoe/theory/alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sparsight/core/error.h"

namespace sparsight::gmoe {
namespace {

constexpr size_t kMaxBranches = 16;

// The cost of every set of branches as one group; bit b of a set: it has branch b.
std::vector<double> costs_of_sets(const ProgramCosts& costs) {
  const size_t branches = costs.branches.size();
  std::vector<double> of_set(size_t{1} << branches);
  for (size_t set = 1; set < of_set.size(); ++set) {
    std::vector<double> group;
    for (size_t b = 0; b < branches; ++b)
      if (set >> b & 1) group.push_back(costs.branches[b]);
    of_set[set] = group_cost(costs, group);
  }
  return of_set;
}

}  // namespace

double group_cost(const ProgramCosts& costs, const std::vector<double>& group) {
  double sum = 0;
  for (const double branch : group) sum += std::pow(branch, 1 / costs.power);
  return std::pow(sum, costs.power);
}

double cheapest_grouping(const ProgramCosts& costs, int64_t experts) {
  if (costs.branches.empty() || costs.branches.size() > kMaxBranches || experts < 1)
    fail("a grouping takes 1 to ", kMaxBranches, " branches and at least one expert, got ", costs.branches.size(),
         " and ", experts);
  const std::vector<double> of_set = costs_of_sets(costs);
  std::vector<double> best = of_set;  // with one group
  for (int64_t groups = 2; groups <= std::min<int64_t>(experts, static_cast<int64_t>(costs.branches.size()));
       ++groups) {
    std::vector<double> next = best;
    for (size_t set = 1; set < of_set.size(); ++set)
      for (size_t group = set; group > 0; group = (group - 1) & set)
        next[set] = std::min(next[set], std::max(of_set[group], best[set ^ group]));
    best = std::move(next);
  }
  return best.back();
}

double moe_alignment(const ProgramCosts& costs, int64_t experts) {
  const bool each_alone = experts >= static_cast<int64_t>(costs.branches.size());
  const double branches = each_alone && !costs.branches.empty()
                              ? *std::max_element(costs.branches.begin(), costs.branches.end())
                              : cheapest_grouping(costs, experts);
  return static_cast<double>(experts + 1) * std::max(branches, costs.gate);
}

}  // namespace sparsight::gmoe
