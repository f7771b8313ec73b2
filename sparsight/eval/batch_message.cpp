#include "sparsight/eval/batch_message.h"

#include <nlohmann/json.hpp>

#include "sparsight/eval/routing_message.h"

namespace sparsight {
namespace {

std::vector<at::Tensor*> tensors_in(EvaluatedBatch& e) {
  return {&e.batch.labels,     &e.batch.targets, &e.batch.domains,  &e.batch.indices,
          &e.batch.label_sets, &e.output.logits, &e.output.features};
}

}  // namespace

std::string to_bytes(const EvaluatedBatch& evaluated) {
  dist::TensorMessage message;
  EvaluatedBatch copy = evaluated;
  Json& json = message.json;
  json["tensors"] = json["routings"] = json["soft_routings"] = Json::array();
  json["ids"] = evaluated.batch.ids;
  for (const at::Tensor* const tensor : tensors_in(copy)) json["tensors"].push_back(message.add(*tensor));
  for (const Routing& routing : evaluated.output.routings) json["routings"].push_back(to_json(routing, message));
  for (const SoftRouting& routing : evaluated.output.soft_routings)
    json["soft_routings"].push_back(to_json(routing, message));
  return message.bytes();
}

EvaluatedBatch evaluated_batch_from(const std::string& bytes) {
  const dist::TensorMessage message = dist::TensorMessage::from_bytes(bytes);
  EvaluatedBatch evaluated;
  size_t i = 0;
  for (at::Tensor* const tensor : tensors_in(evaluated)) *tensor = message.get(message.json.at("tensors").at(i++));
  evaluated.batch.ids = message.json.at("ids").get<std::vector<std::string>>();
  for (const Json& routing : message.json.at("routings"))
    evaluated.output.routings.push_back(routing_from(routing, message));
  for (const Json& routing : message.json.at("soft_routings"))
    evaluated.output.soft_routings.push_back(soft_routing_from(routing, message));
  return evaluated;
}

}  // namespace sparsight
