#include "sparsight/eval/recorded_routing.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/class_information.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

void add_balance(Json& entry, const RecordedLayer& layer) {
  const at::Tensor load = layer.chosen.sum(0).to(at::kDouble), deviations = load.sub(load.mean());
  const double chosen = load.sum().item<double>(), mean = load.mean().item<double>();
  if (chosen <= 0) return;
  entry["cv_load"] = std::sqrt(deviations.square().mean().item<double>()) / mean;
  entry["max_over_mean"] = load.max().item<double>() / mean;
  entry["dropped"] = 1 - layer.kept.sum().item<double>() / chosen;
}

void add_information(Json& entry, const RecordedLayer& layer, const Records& records) {
  ImageExperts images;
  const at::Tensor chosen = layer.chosen.contiguous();
  const int32_t* counts = chosen.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < records.images(); ++i)
    images.add(records.label.const_data_ptr<int64_t>()[i],
               {counts + i * layer.experts, counts + (i + 1) * layer.experts});
  if (images.images() > 1)
    entry["class_information"] = to_json(class_information(images, std::ssize(records.classes), layer.experts));
}

}  // namespace

Json recorded_routing(const Records& records) {
  const Json& router = member(records.settings, "router");
  const auto eval_k = number(router, "eval_k"), k = eval_k.value_or(0) > 0 ? eval_k : number(router, "k");
  Json list = Json::array();
  for (const RecordedLayer& layer : records.layers) {
    Json entry{{"layer", printable(layer.layer)}, {"experts", layer.experts}};
    if (const std::string name = text(router, "name"); !name.empty()) entry["router"] = printable(name);
    if (k) entry["k"] = *k;
    if (layer.chosen.defined()) {
      add_balance(entry, layer);
      if (!records.multi_label()) add_information(entry, layer, records);
    }
    if (layer.mean_top_gate) entry["mean_top_gate"] = *layer.mean_top_gate;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace sparsight
