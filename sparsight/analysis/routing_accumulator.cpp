#include "sparsight/analysis/routing_accumulator.h"

#include <ATen/ops/sum.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

namespace {

at::Tensor on_cpu(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.detach().to(at::kCPU, dtype).contiguous();
}

// Population standard deviation over the mean.
template <class T>
double variation(const std::vector<T>& values) {
  double sum = 0, squares = 0;
  for (T value : values) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(values.size());
  if (values.empty() || mean == 0) return 0;
  for (T value : values) squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  return std::sqrt(squares / static_cast<double>(values.size())) / mean;
}

}  // namespace

RoutingAccumulator::Layer& RoutingAccumulator::layer(const Routing& routing, int64_t classes) {
  for (Layer& layer : layers_) {
    if (layer.name != routing.layer) continue;
    if (layer.experts != routing.experts || layer.classes != classes)
      fail("layer ", layer.name, " had ", layer.experts, " experts and ", layer.classes, " classes, now it has ",
           routing.experts, " and ", classes, "; routings of different models cannot be added up");
    return layer;
  }
  Layer layer;
  layer.name = routing.layer;
  layer.experts = routing.experts;
  layer.classes = classes;
  layer.load.assign(routing.experts, 0);
  layer.kept.assign(routing.experts, 0);
  layer.importance.assign(routing.experts, 0);
  layer.by_class.assign(classes * routing.experts, 0);
  layers_.push_back(std::move(layer));
  return layers_.back();
}

void RoutingAccumulator::add(const std::vector<Routing>& routings, const at::Tensor& labels, int64_t classes) {
  const at::Tensor label_of = on_cpu(labels, at::kLong);
  const int64_t images = label_of.numel();
  for (const Routing& routing : routings) {
    if (routing.tokens == 0) continue;
    if (images == 0 || routing.tokens % images != 0)
      fail("layer ", routing.layer, " routed ", routing.tokens, " tokens for ", images,
           " labels; the tokens must be a multiple of the labels");
    const int64_t per_image = routing.tokens / images;
    Layer& sums = layer(routing, classes);

    const at::Tensor tokens = on_cpu(routing.token, at::kLong), experts = on_cpu(routing.expert, at::kLong);
    const at::Tensor ranks = on_cpu(routing.rank, at::kLong), gates = on_cpu(routing.gate, at::kFloat);
    const at::Tensor kept = on_cpu(routing.kept, at::kBool);
    const int64_t *token = tokens.const_data_ptr<int64_t>(), *expert = experts.const_data_ptr<int64_t>();
    const int64_t *rank = ranks.const_data_ptr<int64_t>(), *label = label_of.const_data_ptr<int64_t>();
    const float* gate = gates.const_data_ptr<float>();
    const bool* is_kept = kept.const_data_ptr<bool>();
    for (int64_t a = 0; a < tokens.numel(); ++a) {
      ++sums.load[expert[a]];
      sums.kept[expert[a]] += is_kept[a];
      if (rank[a] == 0) {
        sums.top_gate += gate[a];
        ++sums.first_choices;
      }
      const int64_t k = label[token[a] / per_image];
      if (k >= 0 && k < classes) ++sums.by_class[k * sums.experts + expert[a]];
    }

    const at::Tensor importance = at::sum(on_cpu(routing.scores, at::kDouble), 0);
    for (int64_t e = 0; e < sums.experts; ++e) sums.importance[e] += importance.const_data_ptr<double>()[e];
  }
}

Json RoutingAccumulator::layers() const {
  Json list = Json::array();
  for (const Layer& layer : layers_) {
    int64_t chosen = 0, kept = 0;
    for (int64_t e = 0; e < layer.experts; ++e) {
      chosen += layer.load[e];
      kept += layer.kept[e];
    }
    const int64_t busiest = *std::max_element(layer.load.begin(), layer.load.end());
    Json entry = {{"layer", layer.name}, {"experts", layer.experts}, {"load", layer.load}};
    if (kept != chosen) entry["kept"] = layer.kept;
    entry["importance"] = layer.importance;
    entry["cv_load"] = variation(layer.load);
    entry["cv_importance"] = variation(layer.importance);
    entry["max_over_mean"] = chosen == 0 ? 0.0 : static_cast<double>(busiest * layer.experts) / chosen;
    entry["dropped"] = chosen == 0 ? 0.0 : static_cast<double>(chosen - kept) / chosen;
    entry["mean_top_gate"] = layer.first_choices == 0 ? 0.0 : layer.top_gate / layer.first_choices;
    list.push_back(std::move(entry));
  }
  return list;
}

Json RoutingAccumulator::class_expert() const {
  Json maps = Json::object();
  for (const Layer& layer : layers_) {
    Json rows = Json::array();
    for (int64_t k = 0; k < layer.classes; ++k) {
      const auto row = layer.by_class.begin() + k * layer.experts;
      rows.push_back(std::vector<int64_t>(row, row + layer.experts));
    }
    maps[layer.name] = std::move(rows);
  }
  return maps;
}

}  // namespace sparsight
