#include "sparsight/infer/predict.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

constexpr size_t kNamedExperts = 3;

LayerExperts experts_of(const Routing& routing) {
  const at::Tensor counts = at::bincount(routing.expert.masked_select(routing.kept), {}, routing.experts).cpu();
  const double total = std::max<double>(1, counts.sum().item<double>());
  LayerExperts layer{routing.layer, {}};
  for (int64_t e = 0; e < routing.experts; ++e)
    if (const int64_t count = counts[e].item<int64_t>(); count > 0)
      layer.shares.push_back({e, static_cast<double>(count) / total});
  std::stable_sort(layer.shares.begin(), layer.shares.end(),
                   [](const ExpertShare& a, const ExpertShare& b) { return a.share > b.share; });
  return layer;
}

at::Tensor transformed(const LoadedModel& loaded, const at::Tensor& image, const std::string& name) {
  try {
    return model_image(loaded, image);
  } catch (const Error& error) {
    fail(name, ": ", error.what());
  }
}

}  // namespace

Prediction predict(const LoadedModel& loaded, const at::Tensor& image, const std::string& name, int64_t top,
                   const Routings& replay) {
  const torch::NoGradGuard no_grad;
  const ModelOutput output =
      loaded.model->forward({.images = transformed(loaded, image, name).unsqueeze(0), .routings = replay});
  const at::Tensor probabilities = output.logits[0].to(at::kDouble).softmax(0);
  if (!probabilities.isfinite().all().item<bool>())
    fail(name, ": the model's output is not finite; its training failed or the image's values are out of range");
  const auto [values, labels] = probabilities.topk(std::min(top, probabilities.size(0)));
  Prediction prediction{name, {}, {}, routings_of(output)};
  for (int64_t i = 0; i < values.size(0); ++i) {
    const int64_t label = labels[i].item<int64_t>();
    prediction.classes.push_back({label, loaded.data.classes.at(static_cast<size_t>(label)), values[i].item<double>()});
  }
  for (const Routing& routing : output.routings) prediction.layers.push_back(experts_of(routing));
  return prediction;
}

std::string to_text(const Prediction& prediction) {
  std::string text = prediction.image + ": ";
  for (size_t i = 0; i < prediction.classes.size(); ++i)
    text += cat(i > 0 ? ", " : "", prediction.classes[i].name, " ", percent(prediction.classes[i].probability, 1));
  for (const LayerExperts& layer : prediction.layers) {
    text += cat("\n  ", layer.layer, ":");
    for (size_t i = 0; i < std::min(kNamedExperts, layer.shares.size()); ++i)
      text += cat(i > 0 ? "," : "", " expert ", layer.shares[i].expert, " ", percent(layer.shares[i].share, 1));
    if (layer.shares.size() > kNamedExperts) text += cat(", ", layer.shares.size() - kNamedExperts, " more");
  }
  return text;
}

Json to_json(const Prediction& prediction) {
  const ClassProbability& best = prediction.classes.front();
  Json json{
      {"image", prediction.image}, {"class", best.name}, {"label", best.label}, {"probability", best.probability}};
  json["classes"] = Json::array();
  for (const ClassProbability& entry : prediction.classes)
    json["classes"].push_back({{"class", entry.name}, {"label", entry.label}, {"probability", entry.probability}});
  json["experts"] = Json::object();
  for (const LayerExperts& layer : prediction.layers) {
    Json shares = Json::array();
    for (const ExpertShare& entry : layer.shares) shares.push_back({{"expert", entry.expert}, {"share", entry.share}});
    json["experts"][layer.layer] = std::move(shares);
  }
  return json;
}

}  // namespace sparsight
