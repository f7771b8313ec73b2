#include "runtime/run/prediction.h"

#include <nlohmann/json.hpp>

namespace sparsight::run {
namespace {

LayerExperts used_experts(const infer::Routing& routing) {
  std::vector<int64_t> counts(static_cast<size_t>(routing.raw.experts));
  for (size_t a = 0; a < routing.size(); ++a)
    if (routing.kept(a)) ++counts[static_cast<size_t>(routing.expert()[a])];
  return rank_experts(routing.layer(), counts);
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
