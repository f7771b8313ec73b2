#include "sparsight/serve/answer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace sparsight::serve {

PredictionSummary prediction_summary(const ServedModel& model, const ImageAnswer& answer, const std::string& image,
                                     int64_t top) {
  const std::vector<double> probabilities = class_probabilities(answer.logits, model.program->info.sigmoid);
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](int64_t label) { return probabilities[static_cast<size_t>(label)]; });
  order.resize(static_cast<size_t>(std::min<int64_t>(top, std::ssize(order))));
  PredictionSummary summary{image, {}, {}};
  for (const int64_t label : order)
    summary.classes.push_back({label, model.class_name(label), probabilities[static_cast<size_t>(label)]});
  for (const LayerAnswer& layer : answer.layers) {
    if (layer.mixes_tokens) continue;
    summary.layers.push_back(rank_experts(layer.layer, layer.counts));
    summary.layers.back().super_class = layer.super_class;
  }
  return summary;
}

Json routing_json(const ImageAnswer& answer) {
  Json json = Json::object();
  for (const LayerAnswer& layer : answer.layers) {
    Json chosen = Json::array();
    for (const std::vector<ExpertGate>& token : layer.chosen) {
      Json gates = Json::array();
      for (const auto& [expert, gate] : token) gates.push_back({expert, gate});
      chosen.push_back(std::move(gates));
    }
    json[layer.layer] = {{"experts", layer.experts},
                         {"tokens_per_image", layer.layout.per_image},
                         {"prefix_tokens", layer.layout.prefix},
                         {"grid", {layer.layout.grid_height, layer.layout.grid_width}},
                         {"chosen", std::move(chosen)}};
  }
  return json;
}

}  // namespace sparsight::serve
