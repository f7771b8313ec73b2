#include "sparsight/eval/routing_message.h"

#include <nlohmann/json.hpp>

namespace sparsight {
namespace {

std::vector<at::Tensor*> tensors_in(Routing& r) {
  return {&r.group,       &r.valid,     &r.priority, &r.target,   &r.clean_logits, &r.noisy_logits, &r.noise_scale,
          &r.scores,      &r.threshold, &r.token,    &r.expert,   &r.rank,         &r.gate,         &r.chosen_count,
          &r.smooth_load, &r.kept,      &r.capacity, &r.position, &r.order,        &r.offsets};
}

std::vector<at::Tensor*> tensors_in(SoftRouting& r) { return {&r.valid, &r.logits, &r.dispatch, &r.combine}; }

template <class AnyRouting>
Json tensor_numbers(AnyRouting routing, dist::TensorMessage& message) {
  Json numbers = Json::array();
  for (const at::Tensor* const tensor : tensors_in(routing)) numbers.push_back(message.add(*tensor));
  return numbers;
}

template <class AnyRouting>
void take_tensors(const Json& numbers, const dist::TensorMessage& message, AnyRouting& routing) {
  size_t i = 0;
  for (at::Tensor* const tensor : tensors_in(routing)) *tensor = message.get(numbers.at(i++));
}

Json to_json(const TokenLayout& layout) {
  return {layout.images, layout.per_image, layout.prefix, layout.grid_height, layout.grid_width};
}

TokenLayout layout_from(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)}; }

}  // namespace

Json to_json(const Routing& routing, dist::TensorMessage& message) {
  Json metrics = Json::array();
  for (const RoutingMetric& metric : routing.metrics) metrics.push_back({metric.name, metric.value});
  return {{"layer", routing.layer},
          {"layout", to_json(routing.layout)},
          {"numbers", {routing.tokens, routing.experts, routing.group_count, routing.per_token}},
          {"flags", {routing.varying, routing.skips, routing.sampled}},
          {"metrics", std::move(metrics)},
          {"tensors", tensor_numbers(routing, message)},
          {"groups", routing.groups ? to_json(*routing.groups, message) : Json()},
          {"soft", routing.soft ? to_json(*routing.soft, message) : Json()}};
}

Routing routing_from(const Json& json, const dist::TensorMessage& message) {
  Routing routing;
  routing.layer = json.at("layer");
  routing.layout = layout_from(json.at("layout"));
  const Json &numbers = json.at("numbers"), &flags = json.at("flags");
  routing.tokens = numbers.at(0), routing.experts = numbers.at(1);
  routing.group_count = numbers.at(2), routing.per_token = numbers.at(3);
  routing.varying = flags.at(0), routing.skips = flags.at(1), routing.sampled = flags.at(2);
  for (const Json& metric : json.at("metrics")) routing.metrics.push_back({metric.at(0), metric.at(1)});
  take_tensors(json.at("tensors"), message, routing);
  if (const Json& groups = json.at("groups"); !groups.is_null())
    routing.groups = std::make_shared<const Routing>(routing_from(groups, message));
  if (const Json& soft = json.at("soft"); !soft.is_null())
    routing.soft = std::make_shared<const SoftRouting>(soft_routing_from(soft, message));
  return routing;
}

Json to_json(const SoftRouting& routing, dist::TensorMessage& message) {
  return {{"layer", routing.layer},
          {"layout", to_json(routing.layout)},
          {"numbers", {routing.experts, routing.slots}},
          {"sampled", routing.sampled},
          {"tensors", tensor_numbers(routing, message)}};
}

SoftRouting soft_routing_from(const Json& json, const dist::TensorMessage& message) {
  SoftRouting routing;
  routing.layer = json.at("layer");
  routing.layout = layout_from(json.at("layout"));
  routing.experts = json.at("numbers").at(0), routing.slots = json.at("numbers").at(1);
  routing.sampled = json.at("sampled");
  take_tensors(json.at("tensors"), message, routing);
  return routing;
}

}  // namespace sparsight
