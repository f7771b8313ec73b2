#include "sparsight/attacks/run/attack_distances.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace sparsight {

Json distances_json(std::vector<double> distances, bool beyond_epsilon) {
  std::ranges::sort(distances);
  const auto count = static_cast<double>(distances.size());
  const auto quantile = [&](double percent) {
    if (distances.empty()) return Json();
    const auto rank = static_cast<size_t>(std::ceil(percent * count / 100));
    const double distance = distances[std::max<size_t>(rank, 1) - 1];
    return std::isfinite(distance) ? Json(distance) : Json();
  };
  return {{"of", distances.size()},
          {"found", std::ranges::count_if(distances, [](double distance) { return std::isfinite(distance); })},
          {"beyond_epsilon", beyond_epsilon},
          {"quantiles",
           {{"p5", quantile(5)},
            {"p25", quantile(25)},
            {"median", quantile(50)},
            {"p75", quantile(75)},
            {"p95", quantile(95)}}}};
}

}  // namespace sparsight
