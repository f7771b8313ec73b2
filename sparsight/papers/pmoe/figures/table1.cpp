#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"
#include "sparsight/papers/pmoe/theory/pmoe_operations.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

constexpr double kCountedError = 0.1;    // eps
constexpr int64_t kCountedBatch = 20;    // B
constexpr double kHiddenConstant = 2.5;  // the constant that O(...) may hide here

// The models of figure 4.
struct CountedModel {
  const char* name;
  PmoeTraining training;
  PmoeSizes sizes;
};
const CountedModel kCountedModels[] = {{"separate", PmoeTraining::separate, {16, 2, 2, 40, 784}},
                                       {"joint", PmoeTraining::joint, {16, 6, 8, 40, 784}},
                                       {"CNN", PmoeTraining::cnn, {16, 16, 1, 40, 784}}};

const CountedModel& counted_model(const std::string& name) {
  for (const CountedModel& model : kCountedModels)
    if (name == model.name) return model;
  fail("unknown model ", name);
}

std::map<std::string, double> counted_symbols(const PmoeSizes& sizes) {
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  return {{"B", real(kCountedBatch)}, {"n", real(sizes.patches)}, {"l", real(sizes.chosen)}, {"k", real(sizes.experts)},
          {"m", real(sizes.neurons)}, {"d", real(sizes.width)},   {"eps", kCountedError}};
}

// A quantity of table 1: its formula and, for the work of one iteration, the count for one batch.
struct CountedQuantity {
  std::string name;
  PowerProduct formula;
  std::optional<int64_t> counted;
};

// A sample's forward pass, as the cost() of the model declares it.
struct DeclaredForward {
  int64_t routers = 0, experts = 0;
};

DeclaredForward declared_forward(const CountedModel& model) {
  const PmoeSizes& sizes = model.sizes;
  TwoLayerSetting setting;
  setting.form = model.training == PmoeTraining::cnn        ? "cnn"
                 : model.training == PmoeTraining::separate ? "separate"
                                                            : "joint";
  setting.experts = sizes.experts;
  setting.filters = filters_of_each(sizes.neurons, sizes.experts);
  setting.patches = sizes.chosen;
  PatchSet shape;
  shape.table = at::empty({0, sizes.width});
  shape.patches = sizes.patches;
  shape.classes = 2;
  DeclaredForward forward;
  for (const PartCost& part : make_two_layer(setting, shape, {})->cost({}))
    (part.part.ends_with(".router") ? forward.routers : forward.experts) += part.cost.multiply_adds;
  return forward;
}

std::vector<CountedQuantity> counted_quantities(const CountedModel& model) {
  const DeclaredForward forward = declared_forward(model);
  const PmoeCompute compute = pmoe_compute(model.training);
  const PmoeOperations pairs = count_pmoe_operations(model.training, model.sizes, RouterGradient::pairs);
  const PmoeOperations mean = count_pmoe_operations(model.training, model.sizes, RouterGradient::mean);
  std::vector<CountedQuantity> all = {
      {"an iteration: forward", compute.per_iteration, kCountedBatch * forward.experts},
      {"an iteration: backward", compute.per_iteration, kCountedBatch * pairs.experts_backward}};
  if (model.training == PmoeTraining::joint) {
    all.push_back({"routers: forward", compute.routers_forward, kCountedBatch * forward.routers});
    all.push_back({"routers: backward, by pairs", compute.routers_backward, kCountedBatch * pairs.routers_backward});
    const PowerProduct once = compute.routers_backward / PowerProduct{{{"l", 1}}};  // k l d
    all.push_back({"routers: backward, around the mean", once, kCountedBatch * mean.routers_backward});
  }
  all.push_back({"iterations", compute.iterations, std::nullopt});
  all.push_back({"total", compute.total, std::nullopt});
  return all;
}

std::vector<Json> table1_jobs(const FigureRun&) {
  std::vector<Json> jobs;
  for (const CountedModel& model : kCountedModels)
    for (const CountedQuantity& quantity : counted_quantities(model))
      jobs.push_back({{"training", model.name},
                      {"multiply-adds of", quantity.name},
                      {"formula", quantity.formula.text()},
                      {"n", model.sizes.patches},
                      {"l", model.sizes.chosen},
                      {"k", model.sizes.experts},
                      {"m", model.sizes.neurons},
                      {"d", model.sizes.width},
                      {"B", kCountedBatch},
                      {"eps", kCountedError}});
  return jobs;
}

Json table1_measure(const Json& job, const FigureRun&) {
  const CountedModel& model = counted_model(job.at("training"));
  for (const CountedQuantity& quantity : counted_quantities(model)) {
    if (quantity.name != job.at("multiply-adds of")) continue;
    const double value = quantity.formula.at(counted_symbols(model.sizes));
    if (!quantity.counted) return {{"value", value}, {"counted", nullptr}, {"ratio", nullptr}};
    return {
        {"value", value}, {"counted", *quantity.counted}, {"ratio", static_cast<double>(*quantity.counted) / value}};
  }
  fail("unknown quantity ", job.at("multiply-adds of"));
}

std::optional<double> find_value(const ResultTable& table, const char* training, const char* quantity) {
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, {{"training", training}, {"multiply-adds of", quantity}})) return row.mean[0];
  return std::nullopt;
}

bool nearly(double a, double b) { return std::abs(a / b - 1) < 1e-9; }

// Counts equal the formulas up to a constant; for the experts' forward and backward pass they are equal.
Claim counts_match(const ResultTable& table) {
  Claim claim{"counted multiply-adds per iteration have the order of table 1", "", true,
              cat("every count within a factor of ", kHiddenConstant)};
  double lowest = INFINITY, highest = 0;
  for (const ResultRow& row : table.rows)
    if (const auto ratio = table.mean(row.settings, "ratio")) {
      lowest = std::min(lowest, *ratio);
      highest = std::max(highest, *ratio);
    }
  if (highest == 0) return {claim.text, "nothing was counted", std::nullopt, claim.test};
  claim.measured = cat("counted / formula from ", fixed(lowest, 2), " to ", fixed(highest, 2));
  claim.holds = lowest >= 1 / kHiddenConstant && highest <= kHiddenConstant;
  return claim;
}

Claim totals_match(const ResultTable& table) {
  Claim claim{"total = multiply-adds per iteration * iterations", "for every model", true,
              "values of every model, to within rounding"};
  for (const CountedModel& model : kCountedModels) {
    const auto total = find_value(table, model.name, "total"), iterations = find_value(table, model.name, "iterations"),
               each = find_value(table, model.name, "an iteration: forward");
    if (!total || !iterations || !each) return {claim.text, "not measured", std::nullopt, claim.test};
    if (nearly(*total, *each * *iterations)) continue;
    claim.measured = cat("not for ", model.name);
    claim.holds = false;
  }
  return claim;
}

// The totals of the CNN and of `name` have the ratio that the paper prints.
Claim compute_saving(const ResultTable& table, const char* name, const PowerProduct& printed) {
  Claim claim{cat(name, " training reduces compute by a factor of ", printed.text(), " compared with the CNN"),
              "not measured", std::nullopt, "values for the models of figure 4, to within rounding"};
  const auto cnn = find_value(table, "CNN", "total"), own = find_value(table, name, "total");
  if (!cnn || !own) return claim;
  const double expected = printed.at(counted_symbols(counted_model(name).sizes));
  claim.measured = cat(fixed(*cnn / *own, 1), ", the printed factor is ", fixed(expected, 1));
  claim.holds = nearly(*cnn / *own, expected);
  return claim;
}

std::vector<Claim> table1_claims(const ResultTable& table, const FigureRun&) {
  return {counts_match(table), totals_match(table), compute_saving(table, "separate", {{{"n", 5}, {"l", -5}}}),
          compute_saving(table, "joint", {{{"n", 5}, {"k", -2}, {"l", -3}}})};
}

}  // namespace

Figure table1() {
  Figure figure;
  figure.name = "pmoe/table1";
  figure.title = "multiply-adds of training, formulas and counts";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"training", "multiply-adds of", "formula"};
  figure.measures = {
      {"value", "value of the formula", 0}, {"counted", "counted", 0}, {"ratio", "counted / formula", 2}};
  figure.jobs = table1_jobs;
  figure.measure = table1_measure;
  figure.claims = table1_claims;
  figure.notes = {
      cat("Values for the models of figure 4 (n = 16, d = 784, m = 40; separate l = 2, k = 2; joint l = 6, k = 8), "
          "batches of ",
          kCountedBatch, " samples and eps = ", kCountedError, ". The formulas leave out constants and logarithms."),
      "Forward passes are counted by the models' cost(), backward passes by executing the gradients' inner products "
      "and "
      "vector sums for one sample, times the batch. Routing in separate training is not in table 1: its routers are "
      "frozen.",
      "The sum over pairs in equation 26 can be computed with the gate-weighted mean of the chosen patches: k l d "
      "instead of k l^2 d."};
  return figure;
}

}  // namespace sparsight::pmoe
