#include "sparsight/data/decorators/stratified.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sparsight/core/shuffle.h"

namespace sparsight {

std::pair<std::vector<int64_t>, std::vector<int64_t>> stratified_split(const DataSet& set, double fraction,
                                                                       uint64_t seed) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> strata;
  for (int64_t i = 0; i < set.size(); ++i) strata[{set.label(i), set.domain(i)}].push_back(i);
  RandomStream stream(seed, "data.split");
  std::pair<std::vector<int64_t>, std::vector<int64_t>> parts;
  int64_t seen = 0;
  for (auto& [key, indices] : strata) {
    shuffle(indices, stream);
    // The rounding error is carried from stratum to stratum, so that it does not add up.
    seen += static_cast<int64_t>(indices.size());
    const auto wanted = static_cast<int64_t>(std::llround(fraction * static_cast<double>(seen))) -
                        static_cast<int64_t>(parts.second.size());
    const auto take = std::clamp<int64_t>(wanted, 0, static_cast<int64_t>(indices.size()));
    parts.second.insert(parts.second.end(), indices.begin(), indices.begin() + take);
    parts.first.insert(parts.first.end(), indices.begin() + take, indices.end());
  }
  std::sort(parts.first.begin(), parts.first.end());
  std::sort(parts.second.begin(), parts.second.end());
  return parts;
}

std::vector<int64_t> balanced_subset(const DataSet& set, int64_t limit, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> classes;
  for (int64_t i = 0; i < set.size(); ++i) classes[set.label(i)].push_back(i);
  RandomStream stream(seed, "data.limit");
  for (auto& [label, indices] : classes) shuffle(indices, stream);
  const auto wanted = static_cast<size_t>(std::min(limit, set.size()));
  std::vector<int64_t> chosen;
  for (size_t round = 0; chosen.size() < wanted; ++round)
    for (const auto& [label, indices] : classes)
      if (round < indices.size() && chosen.size() < wanted) chosen.push_back(indices[round]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace sparsight
