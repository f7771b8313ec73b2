#include "sparsight/analysis/routing_accumulator.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/distinct_experts.h"
#include "sparsight/core/error.h"

namespace sparsight {

namespace {

at::Tensor on_cpu(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.detach().to(at::kCPU, dtype).contiguous();
}

std::vector<int64_t> as_integers(const std::vector<double>& sums) { return {sums.begin(), sums.end()}; }

void add_balance(Json& entry, const RoutingStats& stats) {
  entry["cv_load"] = stats.cv_load;
  entry["cv_importance"] = stats.cv_importance;
  entry["max_over_mean"] = stats.max_over_mean_count;
  entry["max_over_mean_load"] = stats.max_over_mean_load;
  entry["usage_entropy"] = stats.usage_entropy;
  entry["dropped"] = stats.dropped;
  entry["mean_top_gate"] = stats.mean_top_gate;
  entry["experts_per_token"] = stats.experts_per_token;
  entry["kept_per_token"] = stats.kept_per_token;
  entry["tokens_with"] = as_integers(stats.tokens_with);
  if (stats.tokens_with_kept != stats.tokens_with) entry["tokens_with_kept"] = as_integers(stats.tokens_with_kept);
  for (const RoutingMetric& metric : stats.metrics) entry["router"][metric.name] = metric.value;
}

}  // namespace

Json routing_balance(const std::vector<Routing>& routings) {
  Json list = Json::array();
  for (const Routing& routing : routings) {
    Json entry = {{"layer", routing.layer}};
    add_balance(entry, routing_stats(routing));
    list.push_back(std::move(entry));
  }
  return list;
}

RoutingAccumulator::Layer& RoutingAccumulator::layer(const Routing& routing, int64_t classes) {
  for (Layer& layer : layers_) {
    if (layer.name != routing.layer) continue;
    if (layer.experts != routing.experts || layer.classes != classes)
      fail("layer ", layer.name, " had ", layer.experts, " experts and ", layer.classes, " classes, now it has ",
           routing.experts, " and ", classes, "; routings of different models cannot be added up");
    return layer;
  }
  Layer layer{routing.layer, routing.experts, classes, RoutingTotals(routing.experts), 0, 0, 0, {}, {}};
  layer.by_class.assign(classes * routing.experts, 0);
  layers_.push_back(std::move(layer));
  return layers_.back();
}

void RoutingAccumulator::add(const std::vector<Routing>& routings, const at::Tensor& labels, int64_t classes) {
  const at::Tensor long_labels = on_cpu(labels, at::kLong);
  const int64_t images = long_labels.numel();
  for (const Routing& routing : routings) {
    if (routing.tokens == 0) continue;
    if (images == 0 || routing.tokens % images != 0)
      fail("layer ", routing.layer, " routed ", routing.tokens, " tokens for ", images,
           " labels; the tokens must be a multiple of the labels");
    const int64_t per_image = routing.tokens / images;
    Layer& sums = layer(routing, classes);

    sums.totals.add(routing);
    const at::Tensor distinct = distinct_experts(routing, images);
    sums.all_images += images;
    sums.distinct += distinct.sum().item<int64_t>();
    sums.most_distinct = std::max(sums.most_distinct, distinct.max().item<int64_t>());
    const at::Tensor tokens = on_cpu(routing.token, at::kLong), experts = on_cpu(routing.expert, at::kLong);
    const int64_t *token = tokens.const_data_ptr<int64_t>(), *expert = experts.const_data_ptr<int64_t>();
    const int64_t* label = long_labels.const_data_ptr<int64_t>();
    std::vector<std::vector<int64_t>> by_image(images, std::vector<int64_t>(sums.experts));
    for (int64_t a = 0; a < tokens.numel(); ++a) ++by_image[token[a] / per_image][expert[a]];
    for (int64_t b = 0; b < images; ++b) {
      const int64_t k = label[b];
      if (k < 0 || k >= classes) continue;
      for (int64_t e = 0; e < sums.experts; ++e) sums.by_class[k * sums.experts + e] += by_image[b][e];
      sums.images.add(k, by_image[b]);
    }
  }
}

Json RoutingAccumulator::layers() const {
  Json list = Json::array();
  for (const Layer& layer : layers_) {
    const RoutingStats stats = routing_stats(layer.totals);
    Json entry = {{"layer", layer.name}, {"experts", layer.experts}, {"load", as_integers(stats.count)}};
    if (stats.kept != stats.count) entry["kept"] = as_integers(stats.kept);
    entry["importance"] = stats.importance;
    add_balance(entry, stats);
    entry["experts_per_image"] = static_cast<double>(layer.distinct) / static_cast<double>(layer.all_images);
    entry["experts_per_image_max"] = layer.most_distinct;
    if (layer.images.images() > 1)
      entry["class_information"] = to_json(class_information(layer.images, layer.classes, layer.experts));
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
