// Figures 2 and 4 (right): how much of the routing of each layer an attack changes.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

// "layer 1", "layer 1, adversarial", "moe": blocks are counted from 0.
std::string layer_curve(const std::string& path, const std::string& training) {
  const std::string blocks = "blocks.", part = path.substr(0, path.rfind('.'));  // of "blocks.1.mlp" and "moe.mlp"
  const std::string layer = part.starts_with(blocks) ? "layer " + part.substr(blocks.size()) : part;
  return training == kStandard ? layer : cat(layer, ", ", training);
}

std::vector<Json> routing_jobs(const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  std::vector<Json> jobs;
  for (const char* training : {kStandard, kAdversarial})
    for (const std::string& layer : moe_layers(options.vision))
      for (const double epsilon : options.epsilons)
        jobs.push_back({{"layer", layer_curve(layer, training)}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

Json find_layer(const Json& measured, const std::string& path) {
  for (const Json& layer : measured.at("layers"))
    if (layer.at("layer") == path) return layer;
  fail("the model has no MoE layer ", path);
}

Json measure_routing(const Json& job, const FigureRun& run, VisionData data, const char* attack, const char* other) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  const AttackCells cells(options, run);
  const double epsilon = job.at("epsilon");
  const auto seed = job.at("seed").get<int64_t>();
  for (const char* training : {kStandard, kAdversarial})
    for (const std::string& path : moe_layers(options.vision)) {
      if (job.at("layer") != layer_curve(path, training)) continue;
      const VisionModel model{kMoeModel, training, options.vision.experts};
      Json layer = find_layer(cells.measure(model, seed, {.name = attack, .epsilon = epsilon}), path);
      if (other) {
        const Json there = find_layer(cells.measure(model, seed, {.name = other, .epsilon = epsilon}), path);
        layer["change_pgd"] = there.at("change");
        layer["above_pgd"] = layer.at("change").get<double>() - there.at("change").get<double>();
      }
      return layer;
    }
  SPARSIGHT_CHECK(false);
}

std::vector<Measure> routing_measures() {
  std::vector<Measure> measures{{"change", "change of the routing", 3},
                                {"of_chance", "as a share of chance", 3},
                                {"change_chosen", "change before capacity", 3},
                                {"change_public", "change as the authors' code counts", 3}};
  for (const Measure& measure : balance_measures()) measures.push_back(measure);
  return measures;
}

bool is_adversarial(const std::string& curve) { return curve.ends_with(kAdversarial); }

std::vector<std::string> curve_names(const ResultTable& table) {
  std::vector<std::string> curves;
  for (const Json& value : table.axis_values("layer")) curves.push_back(value);
  return curves;
}

// The mean over epsilons above 0.
std::optional<double> mean_change(const SeedMeans& mean, const std::string& curve, const std::string& measure) {
  double sum = 0;
  int64_t count = 0;
  for (const Json& epsilon : mean.table().axis_values("epsilon")) {
    if (epsilon.get<double>() == 0) continue;
    const auto found = mean({{"layer", curve}, {"epsilon", epsilon}}, measure);
    if (!found) return std::nullopt;
    sum += *found, ++count;
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

Claim grows_with_epsilon(const ResultTable& table) {
  const double last = largest_epsilon(table);
  std::vector<Margin> margins;
  for (const std::string& curve : curve_names(table))
    margins.push_back(
        {row_difference({{"layer", curve}, {"epsilon", last}}, {{"layer", curve}, {"epsilon", 0.0}}, "change"),
         "in " + curve});
  return judge(table, "the routing of every layer changes under attack", margins, {.unit = "", .decimals = 3});
}

// The median over layers of how much less the routing changes: above 0 if it does in most layers.
Claim changes_less_after_adversarial_training(const ResultTable& table) {
  std::vector<std::string> layers;
  for (const std::string& curve : curve_names(table))
    if (!is_adversarial(curve)) layers.push_back(curve);
  const auto less = [](const SeedMeans& mean, const std::string& layer) -> std::optional<double> {
    const auto standard = mean_change(mean, layer, "change");
    const auto adversarial = mean_change(mean, cat(layer, ", ", kAdversarial), "change");
    return standard && adversarial ? std::optional(*standard - *adversarial) : std::nullopt;
  };
  const Statistic typical = [=](const SeedMeans& mean) -> std::optional<double> {
    std::vector<double> found;
    for (const std::string& layer : layers)
      if (const auto value = less(mean, layer)) found.push_back(*value);
    if (found.empty() || found.size() < layers.size()) return std::nullopt;
    std::sort(found.begin(), found.end());
    const size_t half = found.size() / 2;
    return found.size() % 2 == 1 ? found[half] : (found[half - 1] + found[half]) / 2;
  };
  const SeedMeans all(table);
  int64_t lower = 0;
  for (const std::string& layer : layers) lower += less(all, layer).value_or(0) > 0 ? 1 : 0;
  MarginTest test{.unit = "", .decimals = 3};
  if (const auto found = typical(all))
    test.measured = cat("less in ", lower, " of ", layers.size(), " layers, by ", shown_number(*found),
                        " in the median, mean over epsilons above 0");
  return judge(table, "after adversarial training the routing changes less in most layers", {{typical}}, test);
}

// Section 4.3: a token's new experts compute much the same.
Claim new_experts_are_alike(const ResultTable& table) {
  std::vector<Margin> margins;
  for (const std::string& curve : curve_names(table))
    margins.push_back({[curve](const SeedMeans& mean) -> std::optional<double> {
                         const auto attacked = mean_change(mean, curve, "redundancy");
                         const auto random = mean_change(mean, curve, "redundancy_random");
                         return attacked && random ? std::optional(*random - *attacked) : std::nullopt;
                       },
                       "in " + curve});
  return judge(table,
               "the experts that an attack switches to compute outputs closer to those before than random ones do",
               margins, {.unit = "", .decimals = 3});
}

Claim adaptive_changes_more(const ResultTable& table) {
  std::vector<Margin> margins;
  for (const std::string& curve : curve_names(table))
    margins.push_back(
        {[curve](const SeedMeans& mean) { return mean_change(mean, curve, "above_pgd"); }, "in " + curve});
  return judge(table, "AutoPGD changes the routing of every layer more than PGD, on average over epsilons", margins,
               {.unit = "", .decimals = 3});
}

Figure routing_curves(const std::string& name, const std::string& title, VisionData data) {
  Figure figure = cell_figure(name, title, data);
  figure.axes = {"layer", "epsilon"};
  figure.measures = routing_measures();
  figure.jobs = [data](const FigureRun& run) { return routing_jobs(run, data); };
  FigureChart chart;
  chart.x = "epsilon";
  chart.y = "change";
  chart.series = "layer";
  figure.charts = {chart};
  figure.notes.push_back(
      "Change: 1 - mean over all tokens, the class token included, of the intersection over union of the token's "
      "experts before and after the attack, after capacity; chance: of two independent uniform choices. A token "
      "without experts in both passes counts as unchanged; the authors' code counts it as changed. Deep layers see "
      "tokens that already differ.");
  figure.notes.push_back(
      "Distance of outputs: of the tokens whose experts changed, ||y(S) - y(S')|| / ||y(S)|| of the layer on the clean "
      "input with the experts of the attacked one, and with as many random ones.");
  return figure;
}

}  // namespace

Figure routing_figure(VisionData data) {
  Figure figure = routing_curves("robust_moe/f2", "change of the routing under PGD", data);
  figure.measure = [data](const Json& job, const FigureRun& run) {
    return measure_routing(job, run, data, kPgd, nullptr);
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{grows_with_epsilon(table), changes_less_after_adversarial_training(table),
                              new_experts_are_alike(table)};
  };
  return figure;
}

Figure adaptive_routing_figure(VisionData data) {
  Figure figure = routing_curves("robust_moe/f4b", "change of the routing under AutoPGD", data);
  figure.measures.insert(figure.measures.begin() + 1, {"change_pgd", "under PGD", 3});
  figure.measures.insert(figure.measures.begin() + 2, {"above_pgd", "more than under PGD", 3});
  figure.measure = [data](const Json& job, const FigureRun& run) {
    return measure_routing(job, run, data, kApgdLoss, kPgd);
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{grows_with_epsilon(table), changes_less_after_adversarial_training(table),
                              adaptive_changes_more(table)};
  };
  figure.notes.push_back(
      "This AutoPGD returns the point of the largest loss of every image. Both attacks thus move all images: the usual "
      "AutoPGD leaves those alone that are misclassified as they are, which would count as unchanged routing.");
  return figure;
}

}  // namespace sparsight::robust_moe
