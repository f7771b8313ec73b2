#include "sparsight/analysis/attacked_routing.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/expert_usage.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

std::vector<Routing> hard_routings(const std::vector<Routing>& routings) {
  std::vector<Routing> hard;
  for (const Routing& routing : routings)
    if (!routing.soft) hard.push_back(detached(routing));
  return hard;
}

// JSON has no NaN.
Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void add_usage(Json& entry, const std::string& prefix, const ExpertUsage& usage) {
  entry[prefix + "load"] = usage.count;
  entry[prefix + "entropy"] = finite_or_null(usage.relative_entropy);
  entry[prefix + "entropy_nats"] = finite_or_null(usage.entropy);
  entry[prefix + "load_cv2"] = finite_or_null(usage.load_cv2);
  entry[prefix + "importance_cv2"] = finite_or_null(usage.importance_cv2);
  entry[prefix + "dropped"] = finite_or_null(usage.dropped);
}

}  // namespace

void AttackedRouting::add(const std::vector<Routing>& clean, const std::vector<Routing>& attacked,
                          const at::Tensor& moved) {
  const std::vector<Routing> before = hard_routings(clean), after = hard_routings(attacked);
  const std::vector<LayerChange> changes = routing_changes(before, after),
                                 published = routing_changes(before, after, BothEmpty::public_compat);
  if (layers_.empty())
    for (const LayerChange& change : changes)
      layers_.push_back({{change.layer, change.experts, change.per_token, {}, {}}, {}, {}, {}, {}});
  if (layers_.size() != changes.size())
    fail("cannot add the routings of ", changes.size(), " layers to those of ", layers_.size());
  for (size_t i = 0; i < changes.size(); ++i) {
    Layer& layer = layers_[i];
    if (layer.change.layer != changes[i].layer || layer.change.experts != changes[i].experts)
      fail("cannot add the routing of ", printable(changes[i].layer), " to that of ", printable(layer.change.layer));
    if (layer.change.per_token != changes[i].per_token) layer.change.per_token = 0;
    layer.change.kept.add(changes[i].kept);
    layer.change.chosen.add(changes[i].chosen);
    layer.published.add(published[i].kept);
    if (moved.defined())
      layer.moved.add(routing_change(kept_sets(before[i]), kept_sets(after[i]), BothEmpty::unchanged, moved));
    layer.clean.push_back(before[i]);
    layer.attacked.push_back(after[i]);
  }
}

Json AttackedRouting::layers() const {
  Json layers = Json::array();
  for (const Layer& layer : layers_) {
    const LayerChange& change = layer.change;
    const bool fixed = change.per_token > 0, counted = change.kept.images > 0;
    Json entry{{"layer", change.layer},
               {"experts", change.experts},
               {"per_token", fixed ? Json(change.per_token) : Json()},
               {"images", change.kept.images},
               {"change", counted ? Json(change.kept.rate()) : Json()},
               {"change_moved", layer.moved.images > 0 ? Json(layer.moved.rate()) : Json()},
               {"change_chosen", counted ? Json(change.chosen.rate()) : Json()},
               {"change_public", counted ? Json(layer.published.rate()) : Json()},
               {"chance", fixed ? Json(change.chance()) : Json()},
               {"of_chance", counted ? finite_or_null(change.of_chance()) : Json()}};
    add_usage(entry, "", expert_usage(layer.clean));
    add_usage(entry, "attacked_", expert_usage(layer.attacked));
    layers.push_back(std::move(entry));
  }
  return layers;
}

}  // namespace sparsight
