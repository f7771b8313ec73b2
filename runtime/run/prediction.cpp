#include "runtime/run/prediction.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sparsight::run {
namespace {

LayerExperts used_experts(const infer::Routing& routing) {
  std::vector<double> counts(static_cast<size_t>(routing.raw.experts));
  double total = 0;
  for (size_t a = 0; a < routing.size(); ++a)
    if (routing.kept(a)) ++counts[static_cast<size_t>(routing.expert()[a])], ++total;
  LayerExperts layer{routing.layer(), {}};
  for (size_t e = 0; e < counts.size(); ++e)
    if (counts[e] > 0) layer.shares.push_back({static_cast<int64_t>(e), counts[e] / total});
  std::ranges::stable_sort(layer.shares, std::ranges::greater(), &ExpertShare::share);
  return layer;
}

}  // namespace

PredictionSummary summary(const infer::Model& model, const std::string& image, const infer::Prediction& prediction,
                          const std::vector<infer::Routing>& routings, int64_t top) {
  PredictionSummary result{image, {}, {}};
  for (const int64_t label : prediction.top(top))
    result.classes.push_back(
        {label, model.class_name(label), prediction.image_probabilities(0)[static_cast<size_t>(label)]});
  for (const infer::Routing& routing : routings) result.layers.push_back(used_experts(routing));
  return result;
}

Json routing_json(const std::vector<infer::Routing>& routings) {
  Json json = Json::object();
  for (const infer::Routing& routing : routings) {
    const sparsight_infer_routing& raw = routing.raw;
    std::vector<Json> chosen(static_cast<size_t>(raw.tokens_per_image), Json::array());
    for (size_t a = 0; a < routing.size(); ++a)
      if (routing.kept(a))
        chosen[static_cast<size_t>(routing.token()[a])].push_back({routing.expert()[a], routing.gate()[a]});
    json[routing.layer()] = {{"experts", raw.experts},
                             {"tokens_per_image", raw.tokens_per_image},
                             {"prefix_tokens", raw.prefix_tokens},
                             {"grid", {raw.grid_height, raw.grid_width}},
                             {"chosen", std::move(chosen)}};
  }
  return json;
}

}  // namespace sparsight::run
