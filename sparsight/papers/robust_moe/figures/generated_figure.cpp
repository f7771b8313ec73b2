// The experiments in miniature: models that train in seconds on a generated task.
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/attack_cells.h"
#include "sparsight/papers/robust_moe/experiments/generated_task.h"
#include "sparsight/papers/robust_moe/experiments/measure_attack.h"
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct GeneratedOptions {
  Repeats repeats;
  GeneratedTraining training;
  std::vector<int64_t> experts = {1, 2, 4, 8};
  std::vector<double> epsilons = {0, 1, 2, 4, 8, 16, 32};
  int64_t test_images = 1000, pgd_steps = 40;
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integer("steps", &training.steps, {2, 1000000}, "steps of the usual training");
    set.integer("adversarial_steps", &training.adversarial_steps, {1, 1000000}, "further steps on attacked images");
    set.integer("batch", &training.batch, {1, 100000}, "images per step");
    set.integers("experts", &experts, {1, 1024}, "numbers of experts");
    set.floats("epsilons", &epsilons, {0, 255}, "radii of the attack, in 255ths, ascending");
    set.integer("test_images", &test_images, {1, 1000000}, "images that are attacked");
    set.integer("pgd_steps", &pgd_steps, {1, 100000}, "steps of PGD");
  }
};

GeneratedOptions generated_options(Scale scale) {
  GeneratedOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 3, 10);
  if (scale == Scale::smoke) {
    options.training = {3, 2, 16};
    options.experts = {1, 2, 8};
    options.epsilons = {0, 8};
    options.test_images = 20;
    options.pgd_steps = 3;
  }
  return options;
}

std::string generated_name(int64_t experts, bool adversarial) {
  return cat("E=", experts, adversarial ? ", adversarial" : "");
}

// Errors in percent of another implementation of this experiment (in Python), with other random numbers: the mean of
// two seeds, of one for E = 8.
Json elsewhere(int64_t experts, bool adversarial, double epsilon) {
  static const std::vector<double> epsilons = {0, 1, 2, 4, 8, 16, 32};
  static const std::map<std::string, std::vector<double>> errors = {
      {"E=1", {21.7, 31.6, 43.0, 66.4, 94.2, 100, 100}},
      {"E=2", {19.8, 28.7, 39.9, 63.6, 93.1, 100, 100}},
      {"E=4", {19.6, 29.0, 38.5, 62.9, 91.0, 99.9, 100}},
      {"E=8", {18.7, 27.0, 36.6, 59.6, 87.6, 99.6, 100}},
      {"E=1, adversarial", {20.9, 28.9, 36.1, 55.1, 84.3, 99.8, 100}},
      {"E=2, adversarial", {17.3, 24.0, 32.1, 51.6, 83.5, 99.6, 100}},
      {"E=4, adversarial", {18.8, 25.5, 33.7, 51.5, 83.9, 99.3, 100}},
      {"E=8, adversarial", {15.2, 20.9, 28.1, 46.2, 79.6, 99.4, 100}}};
  const auto found = errors.find(generated_name(experts, adversarial));
  for (size_t i = 0; found != errors.end() && i < epsilons.size(); ++i)
    if (epsilons[i] == epsilon) return found->second[i];
  return nullptr;
}

std::vector<Json> generated_jobs(const FigureRun& run) {
  const GeneratedOptions options = chosen(generated_options, run);
  std::vector<Json> jobs;
  for (const bool adversarial : {false, true})
    for (const int64_t experts : options.experts)
      for (const double epsilon : options.epsilons)
        jobs.push_back({{"model", generated_name(experts, adversarial)},
                        {"epsilon", epsilon},
                        {"experts", experts},
                        {"adversarial", adversarial}});
  return with_seeds(jobs, options.repeats);
}

// PGD of steps of epsilon / steps, clipped to the range of pixels; the last iterate.
Json attack_at(const std::shared_ptr<TokenMixer>& model, double epsilon, uint64_t seed, const GeneratedOptions& options,
               bool with_importance) {
  Json settings = {{"preset", "strict"},
                   {"steps", options.pgd_steps},
                   {"relative_step", 1.0 / static_cast<double>(options.pgd_steps)},
                   {"keep", "last"}};
  if (with_importance) settings["router_losses"] = {"vmoe_importance"};
  const Batch images = generated_images(seed, "test", 0, options.test_images);
  const AttackContext context{.threat = {.epsilon = epsilon / 255}, .seed = seed};
  const MeasuredAttack how{.attack = attacks().make("pgd", settings, "attack", context),
                           .losses = with_importance,
                           .batch = options.test_images,
                           .seed = seed};
  return measure_attack(model, {images.images, {images.labels}}, how);
}

// Attacks one model at all epsilons: {"epsilon as text": measured}.
Json attack_model(int64_t experts, bool adversarial, uint64_t seed, const GeneratedOptions& options) {
  const auto model = train_on_generated(experts, adversarial, seed, options.training);
  Json all = Json::object();
  for (const double epsilon : options.epsilons) {
    Json measured = attack_at(model, epsilon, seed, options, false);
    if (experts > 2 && epsilon > 0)
      add_measure(measured, "importance_error", attack_at(model, epsilon, seed, options, true), "robust_error");
    all[cat(epsilon)] = measured;
  }
  return all;
}

Json measure_generated(const Json& job, const FigureRun& run) {
  const GeneratedOptions options = chosen(generated_options, run);
  const auto experts = job.at("experts").get<int64_t>();
  const auto seed = job.at("seed").get<uint64_t>();
  const bool adversarial = job.at("adversarial");
  const double epsilon = job.at("epsilon");
  const GeneratedTraining& training = options.training;
  const Json identity = {"generated task",
                         experts,
                         adversarial,
                         seed,
                         training.steps,
                         training.batch,
                         training.adversarial_steps,
                         options.epsilons,
                         options.test_images,
                         options.pgd_steps};
  Json measured = kept_results(run)
                      .result(identity, [&] { return attack_model(experts, adversarial, seed, options); })
                      .at(cat(epsilon));
  const Json layers = measured.at("layers");  // a copy: new keys move the others
  for (size_t i = 0; i < layers.size(); ++i) {
    measured[cat("change_", i)] = layers[i].at("change");
    measured[cat("redundancy_", i)] = layers[i].at("redundancy");
    measured[cat("random_", i)] = layers[i].at("redundancy_random");
  }
  if (!measured.contains("importance_error")) measured["importance_error"] = nullptr;
  measured["elsewhere"] = elsewhere(experts, adversarial, epsilon);
  return measured;
}

// Compares one curve with another at every epsilon above 0: `first` minus `second` is positive.
Claim higher_at_every_epsilon(const ResultTable& table, const std::string& text, const std::string& measure,
                              const std::vector<std::pair<std::string, std::string>>& pairs, double largest,
                              const MarginTest& test) {
  std::vector<Margin> margins;
  for (const auto& [first, second] : pairs)
    for (const Json& epsilon : table.axis_values("epsilon"))
      if (epsilon.get<double>() > 0 && epsilon.get<double>() <= largest)
        margins.push_back({row_difference({{"model", first}, {"epsilon", epsilon}},
                                          {{"model", second}, {"epsilon", epsilon}}, measure),
                           cat("of ", first, " at ", shown(epsilon))});
  return judge(table, text, margins, test);
}

std::vector<Claim> generated_claims(const ResultTable& table, const FigureRun&) {
  const MarginTest rates{.unit = "", .decimals = 3};
  std::vector<std::pair<std::string, std::string>> trainings;
  for (const int64_t experts : {1, 2, 4, 8})
    trainings.emplace_back(generated_name(experts, false), generated_name(experts, true));
  return {never_falls(table, "the error does not fall as epsilon grows", "epsilon", "robust_error", 2),
          every_trial_at_least(table, "at 32/255 the error is at least 99 %", "robust_error", 99, {{"epsilon", 32.0}}),
          higher_at_every_epsilon(table, "eight experts have a smaller error than one, up to 8/255", "robust_error",
                                  {{"E=1", "E=8"}}, 8, {}),
          higher_at_every_epsilon(table, "adversarial training lowers the error, up to 8/255", "robust_error",
                                  trainings, 8, {}),
          every_trial_at_most(table, "with two experts, both of which see every token, the routing never changes",
                              "change_1", 0, {{"model", "E=2"}}),
          higher_at_every_epsilon(table,
                                  "of eight experts, adversarial training lowers the change of the routing in layer 0",
                                  "change_0", {{"E=8", "E=8, adversarial"}}, 32, rates),
          higher_at_every_epsilon(table, "and in layer 1", "change_1", {{"E=8", "E=8, adversarial"}}, 32, rates),
          never_apart(table, "attacking the importance loss too changes the error by at most 2 standard errors",
                      "robust_error", "importance_error", 2)};
}

}  // namespace

Figure generated_task_figure() {
  Figure figure;
  figure.name = "robust_moe/smoke";
  figure.title = "error and routing under attack on a generated task, models that train in seconds";
  figure.needs = "nothing";
  figure.duration = "smoke 3 s, small 5 min, paper 15 min, on 2 cores";
  figure.axes = {"model", "epsilon"};
  figure.measures = {{"robust_error", "error under attack (%)", 1, {"images", true}},
                     {"elsewhere", "in another implementation (%)"},
                     {"importance_error", "attacking the importance loss too (%)", 1, {"images", true}},
                     {"change_0", "change of the routing, layer 0", 3},
                     {"change_1", "layer 1", 3},
                     {"redundancy_1", "distance of outputs where experts changed, layer 1", 3},
                     {"random_1", "with random experts", 3},
                     {"success", "success of the attack (%)", 1, {"clean_correct", true}},
                     {"images", "images", 0}};
  figure.settings = make_settings(generated_options);
  figure.jobs = generated_jobs;
  figure.measure = measure_generated;
  figure.claims = generated_claims;
  for (const char* measure : {"robust_error", "change_1"}) {
    FigureChart chart;
    chart.x = "epsilon";
    chart.y = measure;
    chart.series = "model";
    figure.charts.push_back(chart);
  }
  figure.notes = {
      "The paper has no such experiment: it shows in seconds whether models, attacks, adversarial training and the "
      "measurement of routings work together. Ten classes; 8 tokens of 8 pixels; two blocks, each with an MoE layer of "
      "E experts, two of which see a token (one of E = 1, which then costs half); no capacity limit; fp32.",
      "The numbers of another implementation are for the shape: it had other random numbers.",
      "Adversarial training goes on from the usual one, so it also trains longer, which lowers the error without "
      "attack; the paper's raises it."};
  figure.run_notes = [](const FigureRun& run) {
    const GeneratedOptions options = chosen(generated_options, run);
    const int64_t steps = options.pgd_steps;
    return std::vector<std::string>{
        cat("Epsilon in 255ths of the pixel range. PGD: ", steps, " steps of epsilon/", steps,
            " from the image, clipped to the range of pixels, one run, the last iterate; no router noise. Training: ",
            options.training.steps, " steps, adversarial training ", options.training.adversarial_steps, " more.")};
  };
  return figure;
}

}  // namespace sparsight::robust_moe
