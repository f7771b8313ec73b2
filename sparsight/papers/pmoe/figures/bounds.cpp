#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"

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
  std::string printed = "the same";  // what the paper prints, if that differs
};

void add_theorem(std::vector<BoundRow>& rows, const std::string& name, const PmoeBounds& bounds,
                 const BoundSymbols& symbols, const std::string& other_iterations = "the same") {
  rows.push_back({name, "samples N", bounds.samples, symbols});
  rows.push_back({name, "neurons m", bounds.neurons, symbols});
  rows.push_back({name, "batch B", bounds.batch, symbols});
  rows.push_back({name, "iterations T", bounds.iterations, symbols, other_iterations});
  rows.push_back({name, "learning rate", bounds.learning_rate, symbols});
}

std::vector<BoundRow> bound_rows() {
  const BoundSymbols separate = symbols_for(PmoeTraining::separate), joint = symbols_for(PmoeTraining::joint);
  std::vector<BoundRow> rows;
  add_theorem(rows, "separate (theorem 4.2)", pmoe_bounds(PmoeTraining::separate), separate);
  add_theorem(rows, "CNN (theorem 4.3)", pmoe_bounds(PmoeTraining::cnn), separate);
  add_theorem(rows, "joint (theorem 4.5)", pmoe_bounds(PmoeTraining::joint), joint,
              "lemma H.4: delta^3 k^2 l^3 p^6 / eps^8");
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
  rows.push_back({"routers, c classes", "samples N_r", router_samples_of_classes(), separate,
                  "gap^2 disagrees with gap^3 of lemma 4.1"});
  rows.push_back({"CNN / separate", "samples", pmoe_savings(PmoeTraining::separate).samples, separate});
  rows.push_back({"CNN / separate", "neurons", pmoe_savings(PmoeTraining::separate).neurons, separate});
  rows.push_back({"CNN / joint", "samples", pmoe_savings(PmoeTraining::joint).samples, joint});
  rows.push_back({"CNN / joint", "neurons", pmoe_savings(PmoeTraining::joint).neurons, joint, "n^10 / k^3 l^6"});
  for (const auto& [name, training] : {std::pair{"separate", PmoeTraining::separate},
                                       std::pair{"joint", PmoeTraining::joint}, std::pair{"CNN", PmoeTraining::cnn}})
    rows.push_back({cat("error at fixed N, ", name), "eps", error_at_fixed_samples(training), symbols_for(training)});
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
      return {{"value", row.formula.at(row.symbols)}};
  fail("unknown bound of ", job.at("bound of"));
}

Claim is_printed(const std::string& what, const PowerProduct& follows, const std::string& printed) {
  return {cat(what, " = ", printed, ", as printed"), "from the theorems: " + follows.text(), follows.text() == printed};
}

std::vector<Claim> bounds_claims(const ResultTable&, const FigureRun&) {
  Claim product{"samples = batch * iterations, in every theorem", "exponents agree", true};
  for (const PmoeBounds& bounds :
       {pmoe_bounds(PmoeTraining::separate), pmoe_bounds(PmoeTraining::joint), pmoe_bounds(PmoeTraining::cnn),
        pmoe_bounds_of_classes(PmoeTraining::separate), pmoe_bounds_of_classes(PmoeTraining::joint), router_bounds()})
    if (!(bounds.samples == bounds.batch * bounds.iterations)) {
      product.measured = bounds.samples.text() + " is not the product";
      product.holds = false;
    }
  const PmoeSavings separate = pmoe_savings(PmoeTraining::separate), joint = pmoe_savings(PmoeTraining::joint);
  return {product,
          is_printed("samples of the CNN / separate", separate.samples, "n^8 / l^8"),
          is_printed("neurons of the CNN / separate", separate.neurons, "n^10 / l^10"),
          is_printed("samples of the CNN / joint", joint.samples, "n^8 / k^4 l^6"),
          is_printed("neurons of the CNN / joint", joint.neurons, "n^10 / k^3 l^6"),
          is_printed("error of joint training at fixed samples", error_at_fixed_samples(PmoeTraining::joint),
                     "k^0.25 l^0.375"),
          is_printed("iterations of joint training (lemma H.4)", pmoe_bounds(PmoeTraining::joint).iterations,
                     "delta^3 k^2 l^3 p^6 / eps^8"),
          {"samples for the routers depend on the gap with the same exponent for 2 and for c classes",
           cat(router_bounds().samples.text(), " and ", router_samples_of_classes().text()),
           router_bounds().samples.powers.at("gap") == router_samples_of_classes().powers.at("gap")}};
}

}  // namespace

Figure bounds_table() {
  Figure figure;
  figure.name = "pmoe/bounds";
  figure.title = "bounds of the theorems: samples, neurons, batch size, iterations, learning rate";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"bound of", "quantity", "formula", "printed"};
  figure.measures = {{"value", "value", 2}};
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
