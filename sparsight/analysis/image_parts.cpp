#include "sparsight/analysis/image_parts.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

ImageParts::ImageParts(const CubDgKeypoints& keypoints, std::vector<std::string> domains)
    : keypoints_(keypoints), domains_(std::move(domains)) {
  std::set<std::string> names;
  for (const auto& [id, parts] : keypoints)
    for (const auto& [name, point] : parts) names.insert(name);
  names_.assign(names.begin(), names.end());
}

std::vector<PicturePoint> ImageParts::add(const std::vector<Routing>& routings, int64_t image, const std::string& id,
                                          int64_t domain, MapSize from, MapSize to) {
  const auto found = keypoints_.find(id);
  if (found == keypoints_.end()) return {};
  std::vector<PlacedPart> placed;
  std::vector<PicturePoint> points;
  for (const auto& [name, point] : found->second) {
    if (point.x > static_cast<double>(from.width) || point.y > static_cast<double>(from.height))
      fail("the keypoint of the ", name, " of ", id, ", (", point.x, ", ", point.y, "), is outside of its ", from.width,
           "x", from.height, " pixels; correct keypoints.csv");
    const Keypoint at = rescaled(point, from.height, from.width, to.height, to.width);
    placed.push_back({std::ranges::lower_bound(names_, name) - names_.begin(), at.x, at.y});
    points.push_back({at.x, at.y});
  }
  for (const Routing& routing : routings) {
    if (routing.soft || routing.layout.grid_height <= 0 || routing.layout.grid_width <= 0) continue;
    auto layer = std::ranges::find(layers_, routing.layer, [](const auto& entry) { return entry.first; });
    if (layer == layers_.end()) layer = layers_.insert(layer, {routing.layer, {}});
    const bool several = domains_.size() > 1 && domain >= 0;
    for (const int64_t of : several ? std::vector<int64_t>{-1, domain} : std::vector<int64_t>{-1})
      layer->second.try_emplace(of, routing.layer, std::ssize(names_), routing.experts)
          .first->second.add(routing, image, placed, to.height, to.width);
  }
  return points;
}

Json ImageParts::json() const {
  Json list = Json::array();
  for (const auto& [layer, by_domain] : layers_)
    for (const auto& [domain, table] : by_domain) {
      Json entry = table.json(names_);
      entry["domain"] = domain < 0 ? Json() : Json(domains_.at(static_cast<size_t>(domain)));
      list.push_back(std::move(entry));
    }
  return list;
}

}  // namespace sparsight
