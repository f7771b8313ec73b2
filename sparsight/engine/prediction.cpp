#include "sparsight/engine/prediction.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/core/number_text.h"

namespace sparsight {
namespace {

constexpr size_t kNamedExperts = 3;

}  // namespace

LayerExperts rank_experts(const std::string& layer, const std::vector<int64_t>& counts) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  LayerExperts ranked{layer, {}};
  for (size_t e = 0; e < counts.size(); ++e)
    if (counts[e] > 0) ranked.shares.push_back({static_cast<int64_t>(e), static_cast<double>(counts[e]) / total});
  std::ranges::stable_sort(ranked.shares, std::ranges::greater(), &ExpertShare::share);
  return ranked;
}

std::string to_text(const PredictionSummary& prediction) {
  std::string text = prediction.image + ": ";
  for (size_t i = 0; i < prediction.classes.size(); ++i)
    text += cat(i > 0 ? ", " : "", prediction.classes[i].name, " ", percent(prediction.classes[i].probability, 1));
  for (const LayerExperts& layer : prediction.layers) {
    text += cat("\n  ", layer.layer, ":");
    if (const auto& found = layer.super_class)
      text += cat(" super-class ", found->number, " (", found->name, ") ", percent(found->probability, 1), ",");
    for (size_t i = 0; i < std::min(kNamedExperts, layer.shares.size()); ++i)
      text += cat(i > 0 ? "," : "", " expert ", layer.shares[i].expert, " ", percent(layer.shares[i].share, 1));
    if (layer.shares.size() > kNamedExperts) text += cat(", ", layer.shares.size() - kNamedExperts, " more");
  }
  return text;
}

Json to_json(const PredictionSummary& prediction) {
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
    if (const auto& found = layer.super_class)
      json["super_classes"][layer.layer] = {
          {"super_class", found->name}, {"number", found->number}, {"probability", found->probability}};
  }
  return json;
}

}  // namespace sparsight
