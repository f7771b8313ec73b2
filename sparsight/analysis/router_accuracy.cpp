#include "sparsight/analysis/router_accuracy.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor router_probabilities(const Routing& routing, int64_t images) {
  if (routing.soft || !routing.clean_logits.defined() || images == 0) return {};
  const at::Tensor logits = routing.clean_logits.detach();
  const int64_t rows = logits.size(0);
  if (rows % images != 0)
    fail("layer ", routing.layer, " routed ", rows, " tokens of ", images,
         " images; the tokens must be a multiple of the images");
  const at::Tensor probability = logits.softmax(1).view({images, rows / images, logits.size(1)});
  if (!routing.valid.defined() || rows != routing.tokens) return probability.mean(1).cpu();
  const at::Tensor valid = routing.valid.view({images, rows / images, 1});
  return (probability.masked_fill(valid.logical_not(), 0).sum(1) / valid.sum(1).clamp_min(1)).cpu();
}

at::Tensor router_choice(const Routing& routing, int64_t images) {
  const at::Tensor probability = router_probabilities(routing, images);
  return probability.defined() ? probability.argmax(1) : probability;
}

std::vector<RouterHits> router_hits(const std::vector<Routing>& routings, const at::Tensor& super_class,
                                    int64_t groups) {
  std::vector<RouterHits> layers;
  const int64_t images = super_class.size(0);
  for (const Routing& routing : routings) {
    if (routing.experts != groups) continue;
    const at::Tensor choice = router_choice(routing, images);
    if (!choice.defined()) continue;
    layers.push_back({routing.layer, images, choice.eq(super_class.cpu()).sum().item<int64_t>()});
  }
  return layers;
}

std::optional<double> mean_router_accuracy(const std::vector<RouterHits>& layers) {
  if (layers.empty()) return std::nullopt;
  double sum = 0;
  for (const RouterHits& layer : layers) sum += layer.accuracy();
  return sum / static_cast<double>(layers.size());
}

RouterAccuracy::RouterAccuracy(const std::vector<int64_t>& super_class_of) {
  if (super_class_of.empty()) return;
  of_class_ = at::tensor(super_class_of, at::kLong);
  groups_ = *std::ranges::max_element(super_class_of) + 1;
}

void RouterAccuracy::add(const std::vector<Routing>& routings, const at::Tensor& labels) {
  if (!measures() || labels.size(0) == 0) return;
  for (const RouterHits& found : router_hits(routings, of_class_.index_select(0, labels.cpu()), groups_)) {
    auto layer = std::ranges::find(layers_, found.layer, &RouterHits::layer);
    if (layer == layers_.end()) layer = layers_.insert(layer, {found.layer});
    layer->images += found.images;
    layer->hits += found.hits;
  }
}

void RouterAccuracy::put_into(Json& layers) const {
  for (Json& layer : layers)
    for (const RouterHits& found : layers_)
      if (layer["layer"] == found.layer) layer["router_accuracy"] = found.accuracy();
}

}  // namespace sparsight
