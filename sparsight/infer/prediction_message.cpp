#include "sparsight/infer/prediction_message.h"

#include <nlohmann/json.hpp>

#include "sparsight/eval/routing_message.h"

namespace sparsight {
namespace {

// Names may be any bytes, which JSON in this form keeps.
Json to_json(const Prediction& prediction, dist::TensorMessage& message) {
  Json classes = Json::array(), layers = Json::array(), routings = Json::array();
  for (const ClassProbability& one : prediction.classes) classes.push_back({one.label, one.name, one.probability});
  for (const LayerExperts& layer : prediction.layers) {
    Json shares = Json::array(), super_class;
    for (const ExpertShare& share : layer.shares) shares.push_back({share.expert, share.share});
    if (const auto& of = layer.super_class) super_class = {of->number, of->name, of->probability};
    layers.push_back({layer.layer, std::move(shares), std::move(super_class)});
  }
  for (const auto& [layer, routing] : prediction.routings)
    routings.push_back({layer, sparsight::to_json(routing, message)});
  return {{"image", prediction.image},
          {"classes", std::move(classes)},
          {"layers", std::move(layers)},
          {"routings", std::move(routings)}};
}

Prediction prediction_from(const Json& json, const dist::TensorMessage& message) {
  Prediction prediction;
  prediction.image = json.at("image");
  for (const Json& one : json.at("classes")) prediction.classes.push_back({one.at(0), one.at(1), one.at(2)});
  for (const Json& layer : json.at("layers")) {
    LayerExperts& experts = prediction.layers.emplace_back();
    experts.layer = layer.at(0);
    for (const Json& share : layer.at(1)) experts.shares.push_back({share.at(0), share.at(1)});
    if (const Json& of = layer.at(2); !of.is_null())
      experts.super_class = RoutedSuperClass{of.at(0), of.at(1), of.at(2)};
  }
  for (const Json& routing : json.at("routings"))
    prediction.routings.emplace(routing.at(0).get<std::string>(), routing_from(routing.at(1), message));
  return prediction;
}

}  // namespace

std::string to_bytes(const std::vector<FileOutcome>& outcomes) {
  dist::TensorMessage message;
  message.json = Json::array();
  for (const FileOutcome& outcome : outcomes)
    message.json.push_back(outcome.prediction ? to_json(*outcome.prediction, message) : Json(outcome.error));
  return message.bytes();
}

std::vector<FileOutcome> file_outcomes_from(const std::string& bytes) {
  const dist::TensorMessage message = dist::TensorMessage::from_bytes(bytes);
  std::vector<FileOutcome> outcomes;
  for (const Json& json : message.json) {
    FileOutcome& outcome = outcomes.emplace_back();
    if (json.is_string())
      outcome.error = json;
    else
      outcome.prediction = prediction_from(json, message);
  }
  return outcomes;
}

}  // namespace sparsight
