#include "sparsight/papers/mobile_vmoe/experiments/measure_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/experiments/class_groups.h"
#include "sparsight/reproduce/train_job.h"

namespace sparsight::mobile_vmoe {
namespace {

struct Usage {
  std::vector<std::vector<double>> shares;  // of each router
  double entropy = 0, busiest = 0, unused = 0;
};

Usage mean_usage(const Json& layers) {
  Usage usage;
  for (const Json& layer : layers) {
    auto share = layer.at("load").get<std::vector<double>>();
    const double total = std::accumulate(share.begin(), share.end(), 0.0);
    double entropy = 0;
    for (double& part : share) {
      part = total > 0 ? part / total : 0;
      if (part > 0) entropy -= part * std::log(part);
      if (part == 0) usage.unused += 1;
      usage.busiest = std::max(usage.busiest, 100 * part);
    }
    if (share.size() > 1) usage.entropy += entropy / std::log(static_cast<double>(share.size()));
    usage.shares.push_back(share);
  }
  usage.entropy /= static_cast<double>(std::max<size_t>(1, layers.size()));
  return usage;
}

}  // namespace

Json model_measures(const Json& test, const MobileModel& model, const MobileCost& cost) {
  Json measured = {{"accuracy", 100 * test.at("accuracy").get<double>()},
                   {"images", test.at("images")},
                   {"mflop", cost.mflop},
                   {"parameters", cost.parameters},
                   {"touched", cost.active}};
  for (const char* key : {"router_accuracy", "entropy", "busiest", "unused", "distinct", "distinct_most", "usage"})
    measured[key] = nullptr;
  if (!model.is_routed()) return measured;
  if (test.contains("router_accuracy")) measured["router_accuracy"] = 100 * test.at("router_accuracy").get<double>();
  const Json& layers = test.at("layers");
  const Usage usage = mean_usage(layers);
  measured["entropy"] = usage.entropy;
  measured["busiest"] = usage.busiest;
  measured["unused"] = usage.unused;
  measured["usage"] = usage.shares;
  double distinct = 0, most = 0;
  for (const Json& layer : layers) {
    distinct += layer.at("experts_per_image").get<double>() / static_cast<double>(layers.size());
    most = std::max(most, layer.at("experts_per_image_max").get<double>());
  }
  measured["distinct"] = distinct;
  measured["distinct_most"] = most;
  measured["touched"] = cost.touched(distinct, model.k);
  return measured;
}

Json measure_model(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed) {
  Json sections = training_sections(model, options, run, seed);
  Json identity = training_identity(sections, run);
  const ClassGroups groups = groups_for(model, options, run, seed);
  if (!groups.section.is_null()) {
    sections["superclasses"] = groups.section;
    identity["superclasses"] = groups.section;
    if (!groups.map.empty()) identity["superclasses"]["file"] = groups.map;
  }
  const KeptResults kept = kept_results(run);
  return kept.result(identity, [&] {
    const JobTraining training = train_in_job(sections, kept.folder_for(identity));
    Json measured = model_measures(training.test, model, mobile_cost(model, options, run));
    measured["train_accuracy"] = 100 * training.epochs.back().accuracy;
    measured["seconds"] = training.epochs.back().seconds;
    return measured;
  });
}

Json measure_against(const MobileModel& model, const std::optional<MobileModel>& baseline, const MobileOptions& options,
                     const FigureRun& run, int64_t seed) {
  Json measured = measure_model(model, options, run, seed);
  measured["difference"] = nullptr;
  if (!baseline) return measured;
  const Json other = measure_model(*baseline, options, run, seed);
  measured["difference"] = measured.at("accuracy").get<double>() - other.at("accuracy").get<double>();
  return measured;
}

}  // namespace sparsight::mobile_vmoe
