#include "sparsight/analysis/keypoint_patches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/patch_tint.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

double entropy_bits(const std::vector<int64_t>& counts) {
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double bits = 0;
  for (const int64_t count : counts)
    if (count > 0) bits -= static_cast<double>(count) / sum * std::log2(static_cast<double>(count) / sum);
  return bits;
}

}  // namespace

std::vector<int64_t> nearest_patches(double x, double y, const PixelGrid& grid, int64_t count) {
  if (!(x >= 0 && y >= 0 && x <= static_cast<double>(grid.width) && y <= static_cast<double>(grid.height)))
    fail("the keypoint (", x, ", ", y, ") is outside of the image of ", grid.width, "x", grid.height, " pixels");
  const double wide = static_cast<double>(grid.width) / static_cast<double>(grid.columns),
               tall = static_cast<double>(grid.height) / static_cast<double>(grid.rows);
  std::vector<std::pair<double, int64_t>> distances;
  for (int64_t p = 0; p < grid.rows * grid.columns; ++p) {
    const int64_t row = p / grid.columns, column = p % grid.columns;
    const double dx = (static_cast<double>(column) + 0.5) * wide - x, dy = (static_cast<double>(row) + 0.5) * tall - y;
    distances.emplace_back(dx * dx + dy * dy, p);
  }
  const auto taken = static_cast<size_t>(std::clamp<int64_t>(count, 0, std::ssize(distances)));
  std::partial_sort(distances.begin(), distances.begin() + static_cast<int64_t>(taken), distances.end());
  std::vector<int64_t> patches(taken);
  for (size_t i = 0; i < taken; ++i) patches[i] = distances[i].second;
  return patches;
}

PartExperts::PartExperts(std::string layer, int64_t parts, int64_t experts)
    : layer_(std::move(layer)),
      parts_(parts),
      experts_(experts),
      counts_(static_cast<size_t>((parts + 1) * experts)),
      keypoints_(static_cast<size_t>(parts)) {}

void PartExperts::add(const Routing& routing, int64_t image, const std::vector<PlacedPart>& points, int64_t height,
                      int64_t width) {
  const PixelGrid grid{routing.layout.grid_height, routing.layout.grid_width, height, width};
  if (grid.rows <= 0 || grid.columns <= 0) fail("the tokens of ", layer_, " are no grid of patches");
  if (routing.experts != experts_) fail(layer_, " had ", experts_, " experts, now it has ", routing.experts);
  const std::vector<int64_t> first = first_experts(routing, image);
  const auto patch_expert = [&](int64_t patch) { return first.at(static_cast<size_t>(routing.layout.prefix + patch)); };
  std::vector<bool> covered(static_cast<size_t>(grid.rows * grid.columns), false);
  for (const PlacedPart& point : points) {
    SPARSIGHT_CHECK(point.part >= 0 && point.part < parts_);
    std::vector<int64_t> of_point(static_cast<size_t>(experts_));
    for (const int64_t patch : nearest_patches(point.x, point.y, grid)) {
      covered[static_cast<size_t>(patch)] = true;
      if (const int64_t expert = patch_expert(patch); expert >= 0) {
        ++counts_[static_cast<size_t>(point.part * experts_ + expert)];
        ++of_point[static_cast<size_t>(expert)];
      }
    }
    ++keypoints_[static_cast<size_t>(point.part)];
    points_.add(point.part, of_point);
  }
  for (int64_t patch = 0; patch < std::ssize(covered); ++patch)
    if (const int64_t expert = patch_expert(patch); !covered[static_cast<size_t>(patch)] && expert >= 0)
      ++counts_[static_cast<size_t>(parts_ * experts_ + expert)];
}

ClassInformation PartExperts::information() const { return class_information(points_, parts_, experts_); }

double PartExperts::part_entropy() const { return entropy_bits(keypoints_); }

Json PartExperts::json(const std::vector<std::string>& parts) const {
  Json rows = Json::array(), best = Json::array(), entropies = Json::array(), pairs = Json::array();
  for (int64_t p = 0; p <= parts_; ++p) {
    const std::vector<int64_t> row(counts_.begin() + p * experts_, counts_.begin() + (p + 1) * experts_);
    const bool any = std::ranges::any_of(row, [](int64_t count) { return count > 0; });
    rows.push_back(row);
    best.push_back(any ? Json(std::ranges::max_element(row) - row.begin()) : Json());
    entropies.push_back(any ? Json(entropy_bits(row)) : Json());
  }
  for (size_t left = 0; left < parts.size(); ++left) {
    if (!parts[left].starts_with("left ")) continue;
    const std::string pair = parts[left].substr(5);
    const auto right = static_cast<size_t>(std::ranges::find(parts, "right " + pair) - parts.begin());
    if (right == parts.size() || best[left].is_null() || best[right].is_null()) continue;
    pairs.push_back({{"pair", pair}, {"same", best[left] == best[right]}});
  }
  const ClassInformation found = information();
  const double whole = part_entropy();
  return {{"layer", layer_},
          {"experts", experts_},
          {"keypoints", keypoints_},
          {"counts", rows},
          {"best_expert", best},
          {"entropy", entropies},
          {"information", to_json(found)},
          {"of_part_entropy", whole > 0 ? Json(found.bits / whole) : Json()},
          {"pairs", pairs}};
}

}  // namespace sparsight
