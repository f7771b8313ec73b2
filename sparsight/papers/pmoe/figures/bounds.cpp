#include <cmath>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

using BoundSymbols = std::map<std::string, double>;

// The HARD profile of papers/pmoe/theory/pattern_model.h and the models of figure 4.
const BoundSymbols kSeparateSymbols = {{"n", 16}, {"l", 2},           {"k", 2},     {"c", 4},    {"p", 8},
                                       {"m", 40}, {"delta", 4 / 3.0}, {"eps", 0.1}, {"gap", 0.5}};

BoundSymbols symbols_for(PmoeTraining training) {
  BoundSymbols symbols = kSeparateSymbols;
  if (training == PmoeTraining::joint) symbols["l"] = 6, symbols["k"] = 8;
  return symbols;
}

struct BoundRow {
  std::string of, quantity;
  PowerProduct formula;
  BoundSymbols symbols;
  std::string printed = "the same";        // what the paper prints, if that differs
  std::optional<PowerProduct> other = {};  // the same as a formula, for a claim
};

void add_theorem(std::vector<BoundRow>& rows, const std::string& name, const PmoeBounds& bounds,
                 const BoundSymbols& symbols) {
  rows.push_back({name, "samples N", bounds.samples, symbols});
  rows.push_back({name, "neurons m", bounds.neurons, symbols});
  rows.push_back({name, "batch B", bounds.batch, symbols});
  rows.push_back({name, "iterations T", bounds.iterations, symbols});
  rows.push_back({name, "learning rate", bounds.learning_rate, symbols});
}

std::string printed_text(const PowerProduct& follows, const PowerProduct& printed) {
  return follows == printed ? "the same" : printed.text();
}

std::vector<BoundRow> bound_rows() {
  const BoundSymbols separate = symbols_for(PmoeTraining::separate), joint = symbols_for(PmoeTraining::joint);
  std::vector<BoundRow> rows;
  add_theorem(rows, "separate (theorem 4.2)", pmoe_bounds(PmoeTraining::separate), separate);
  add_theorem(rows, "CNN (theorem 4.3)", pmoe_bounds(PmoeTraining::cnn), separate);
  add_theorem(rows, "joint (theorem 4.5)", pmoe_bounds(PmoeTraining::joint), joint);
  const BoundRow iterations = rows[rows.size() - 2];
  rows[rows.size() - 2].printed = "lemma H.4: delta^3 k^2 l^3 p^6 / eps^8";
  rows[rows.size() - 2].other = iterations.formula * PowerProduct{{{"l", 1}}};
  for (const auto& [name, training] :
       {std::pair{"separate, c classes", PmoeTraining::separate}, std::pair{"joint, c classes", PmoeTraining::joint}}) {
    const PmoeBounds bounds = pmoe_bounds_of_classes(training);
    const BoundSymbols symbols = symbols_for(training);
    rows.push_back({name, "samples N", bounds.samples, symbols});
    rows.push_back({name, "neurons m", bounds.neurons, symbols});
    rows.push_back({name, "batch B", bounds.batch, symbols});
    rows.push_back({name, "iterations T", bounds.iterations, symbols});
  }
  const PmoeBounds routers = router_bounds();
  rows.push_back({"routers (lemma 4.1)", "samples N_r", routers.samples, separate});
  rows.push_back({"routers (lemma 4.1)", "batch B_r", routers.batch, separate});
  rows.push_back({"routers (lemma 4.1)", "iterations T_r", routers.iterations, separate});
  rows.push_back({"routers (lemma 4.1)", "learning rate", routers.learning_rate, separate});
  // Lemma 4.1 for two classes, times c^2.
  rows.push_back({"routers, c classes", "samples N_r", router_samples_of_classes(), separate,
                  "gap^2 disagrees with gap^3 of lemma 4.1", routers.samples * PowerProduct{{{"c", 2}}}});
  const auto savings = [&](const char* name, PmoeTraining training, const PowerProduct& samples,
                           const PowerProduct& neurons) {
    const BoundSymbols symbols = symbols_for(training);
    const PmoeSavings saved = pmoe_savings(training);
    rows.push_back({name, "samples", saved.samples, symbols, printed_text(saved.samples, samples), samples});
    rows.push_back({name, "neurons", saved.neurons, symbols, printed_text(saved.neurons, neurons), neurons});
  };
  savings("CNN / separate", PmoeTraining::separate, {{{"n", 8}, {"l", -8}}}, {{{"n", 10}, {"l", -10}}});
  savings("CNN / joint", PmoeTraining::joint, {{{"n", 8}, {"k", -4}, {"l", -6}}}, {{{"n", 10}, {"k", -3}, {"l", -6}}});
  for (const auto& [name, training] : {std::pair{"separate", PmoeTraining::separate},
                                       std::pair{"joint", PmoeTraining::joint}, std::pair{"CNN", PmoeTraining::cnn}})
    rows.push_back({cat("error at fixed N, ", name), "eps", error_at_fixed_samples(training), symbols_for(training)});
  rows[rows.size() - 2].other = PowerProduct{{{"k", 0.25}, {"l", 0.375}}};
  return rows;
}

std::vector<Json> bounds_jobs(const FigureRun&) {
  std::vector<Json> jobs;
  for (const BoundRow& row : bound_rows()) {
    Json job = {
        {"bound of", row.of}, {"quantity", row.quantity}, {"formula", row.formula.text()}, {"printed", row.printed}};
    for (const auto& [symbol, value] : row.symbols) job[symbol] = value;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Json bounds_measure(const Json& job, const FigureRun&) {
  for (const BoundRow& row : bound_rows())
    if (row.of == job.at("bound of") && row.quantity == job.at("quantity"))
      return {{"value", row.formula.at(row.symbols)},
              {"printed_value", row.other ? Json(row.other->at(row.symbols)) : Json()}};
  fail("unknown bound of ", job.at("bound of"));
}

std::optional<double> value_in(const ResultTable& table, const std::string& of, const std::string& quantity) {
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, {{"bound of", of}, {"quantity", quantity}})) return row.mean[0];
  return std::nullopt;
}

// In every theorem, N = B T.
Claim samples_are_a_product(const ResultTable& table) {
  Claim claim{"samples = batch * iterations, in every theorem", "not measured", std::nullopt,
              "values of every theorem, to within rounding"};
  int64_t theorems = 0;
  for (const Json& of : table.axis_values("bound of")) {
    const auto samples = value_in(table, of, "samples N"), batch = value_in(table, of, "batch B"),
               iterations = value_in(table, of, "iterations T");
    if (!samples || !batch || !iterations) continue;
    ++theorems;
    if (std::abs(*samples / (*batch * *iterations) - 1) < 1e-9) continue;
    return {claim.text, cat("not of ", of.get<std::string>()), false, claim.test};
  }
  if (theorems > 0) claim.holds = true, claim.measured = cat("in ", theorems, " theorems");
  return claim;
}

std::vector<Claim> bounds_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Claim> claims = {samples_are_a_product(table)};
  const auto add = [&](const std::string& text, const std::string& of, const std::string& quantity) {
    claims.push_back(
        every_trial_equal(table, text, "value", "printed_value", {{"bound of", of}, {"quantity", quantity}}));
  };
  add("samples of the CNN / separate = n^8 / l^8, as printed", "CNN / separate", "samples");
  add("neurons of the CNN / separate = n^10 / l^10, as printed", "CNN / separate", "neurons");
  add("samples of the CNN / joint = n^8 / k^4 l^6, as printed", "CNN / joint", "samples");
  add("neurons of the CNN / joint = n^10 / k^3 l^6, as printed", "CNN / joint", "neurons");
  add("error of joint training at fixed samples = k^0.25 l^0.375, as printed", "error at fixed N, joint", "eps");
  add("iterations of joint training = delta^3 k^2 l^3 p^6 / eps^8, as printed in lemma H.4", "joint (theorem 4.5)",
      "iterations T");
  add("samples for the routers of c classes have the gap's exponent of lemma 4.1", "routers, c classes", "samples N_r");
  return claims;
}

}  // namespace

Figure bounds_table() {
  Figure figure;
  figure.name = "pmoe/bounds";
  figure.title = "bounds of the theorems: samples, neurons, batch size, iterations, learning rate";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"bound of", "quantity", "formula", "printed"};
  figure.measures = {{"value", "value", 2}, {"printed_value", "as printed", 2}};
  figure.jobs = bounds_jobs;
  figure.measure = bounds_measure;
  figure.claims = bounds_claims;
  figure.notes = {
      "Constants and logarithms are left out. Bounds on samples, neurons and batch size are lower bounds, those on "
      "iterations and learning rate upper bounds. They are sufficient, not necessary: compare them with each other, do "
      "not read them as counts.",
      "Values for n = 16, p = 8, delta = 4/3, gap = 1 - delta_d = 0.5, m = 40, c = 4, eps = 0.1; separate: l = 2, "
      "k = 2; joint: l = 6, k = 8.",
      "Differs from the paper: its text prints n^10 / (k^3 l^6) for the CNN's neurons divided by those of joint "
      "training; n^8 / (k^3 l^6) follows from its theorems and is used here.",
      "Lemma H.4 has k^2 l^3 where theorem 4.5 and table 1 have k^2 l^2; the theorem's exponent is used.",
      "Samples for the routers of c classes are as printed, with gap^2; lemma 4.1 has gap^3 for two classes."};
  return figure;
}

}  // namespace sparsight::pmoe
