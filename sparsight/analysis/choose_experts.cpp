#include "sparsight/analysis/choose_experts.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sparsight/core/error.h"

namespace sparsight {

std::vector<bool> used_experts(const std::vector<double>& load) {
  std::vector<bool> kept;
  for (const double each : load) kept.push_back(each > 0);
  return kept;
}

std::vector<bool> experts_from_share(const std::vector<double>& load, double share) {
  const double all = std::accumulate(load.begin(), load.end(), 0.0);
  std::vector<bool> kept;
  for (const double each : load) kept.push_back((all > 0 ? each / all : 0) >= share);
  return kept;
}

std::vector<bool> best_experts(const std::vector<double>& score, const std::vector<double>& second, int64_t count) {
  SPARSIGHT_CHECK(score.size() == second.size() && count >= 0);
  std::vector<size_t> order(score.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return std::tie(score[a], second[a]) > std::tie(score[b], second[b]); });
  std::vector<bool> kept(score.size(), false);
  for (size_t i = 0; i < order.size() && i < static_cast<size_t>(count); ++i) kept[order[i]] = true;
  return kept;
}

}  // namespace sparsight
