#include "sparsight/papers/robust_moe/experiments/attack_cells.h"

#include <filesystem>
#include <map>
#include <mutex>

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/config.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/papers/robust_moe/experiments/measure_attack.h"
#include "sparsight/papers/robust_moe/experiments/measure_damage.h"
#include "sparsight/papers/robust_moe/experiments/measure_transfer.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/train_job.h"

namespace sparsight::robust_moe {
namespace {

// Read once for each folder of data.
std::string fingerprint_of_data(VisionData data, const FigureRun& run) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  std::string& found = known[run.data + "/" + vision_choice(data).set];
  if (found.empty()) found = read_data({vision_choice(data)}, run).fingerprint;
  return found;
}

bool is_apgd(const CellAttack& attack) { return attack.name == kApgd || attack.name == kApgdLoss; }

Json attack_settings(const CellAttack& attack, const CellOptions& options) {
  Json settings;
  if (is_apgd(attack))
    settings = {{"steps", options.apgd_steps}};
  else
    settings = {{"steps", options.pgd_steps}, {"preset", attack.name == kPgd ? "strict" : "paper"}};
  if (attack.name == kApgdLoss) settings["keep"] = "loss";
  if (!attack.gradient.empty()) settings["gradient"] = attack.gradient;
  if (attack.router_weight == 0) return settings;
  settings["router_losses"] = {"vmoe_importance"};
  settings["router_weight"] = attack.router_weight;
  settings["task_weight"] = attack.task_weight;
  return settings;
}

std::shared_ptr<const Attack> make_attack(const CellAttack& attack, const CellOptions& options, int64_t seed) {
  const AttackContext context{.threat = {.epsilon = attack.epsilon / 255}, .seed = static_cast<uint64_t>(seed)};
  Json settings = attack_settings(attack, options);
  if (attack.epsilon == 0) settings["steps"] = 1;  // it cannot change anything
  return attacks().make(is_apgd(attack) ? "apgd" : "pgd", settings, "attack", context);
}

Json damage_settings(const CellDamage& attack, const CellOptions& options) {
  Json settings = {{"steps", options.pgd_steps}, {"preset", "strict"}};
  if (!attack.drops) return settings;
  settings.update({{"keep", "loss"}, {"task_weight", 0}, {"routing_loss", "drops"}});
  return settings;
}

// Changes of the configuration of the trained model.
std::vector<std::string> make_overrides(const std::optional<int64_t>& k, const std::optional<double>& capacity) {
  std::vector<std::string> overrides;
  if (k) overrides.push_back(cat("router.eval_k=", *k));
  if (capacity) overrides.push_back(cat("capacity.eval_factor=", *capacity));
  return overrides;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// The test split, as the model takes it.
AttackBatch test_images(const LoadedModel& loaded) {
  const DataSplits splits = make_component(data_sets(), loaded.config, "data", DataContext{0});
  std::vector<at::Tensor> pixels;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < splits.test->size(); ++i) {
    const Sample sample = splits.test->get(i);
    pixels.push_back(model_image(loaded, sample.image));
    labels.push_back(sample.label);
  }
  const auto images = static_cast<int64_t>(labels.size());
  return {at::stack(pixels), {torch::tensor(labels, torch::kLong)}, torch::arange(images, torch::kLong)};
}

}  // namespace

void CellOptions::declare(OptionSet& set) {
  repeats.declare(set);
  vision.declare(set);
  set.integer("attack_batch", &attack_batch, {1, 100000}, "images that are attacked together");
  set.floats("epsilons", &epsilons, {0, 255}, "radii of the attacks, in 255ths, ascending");
  set.integer("pgd_steps", &pgd_steps, {1, 100000}, "steps of PGD");
  set.integer("apgd_steps", &apgd_steps, {1, 100000}, "steps of AutoPGD");
}

CellOptions::CellOptions(Scale scale, VisionData data) : vision(vision_options(scale, data)) {
  repeats.trials = by_scale<int64_t>(scale, 1, 3, 5);
  epsilons = by_scale<std::vector<double>>(scale, {0, 8}, {0, .5, 1, 2, 4, 8, 16, 32},
                                           {0, .25, .5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64});
  if (scale == Scale::smoke) pgd_steps = 3, apgd_steps = 4;
}

KeptResults kept_results(const FigureRun& run) { return {run, "robust_moe", "robust_moe 1"}; }

AttackCells::AttackCells(const CellOptions& options, const FigureRun& run)
    : options_(options), run_(run), kept_(kept_results(run)) {}

std::string AttackCells::trained(const VisionModel& model, int64_t seed) const {
  const bool adversarial = model.training == kAdversarial;
  std::string start;
  if (adversarial) {
    VisionModel standard = model;
    standard.training = kStandard;
    start = trained(standard, seed);
  }
  const Json sections = vision_sections(model, options_.vision, run_, seed, start);
  Json identity = sections;
  identity["data"].erase("root");
  if (adversarial) identity["train"]["init_from"] = file_name(start);
  identity["of"] = fingerprint_of_data(options_.vision.data, run_);
  const std::string weights = kept_.file(identity, ".safetensors");
  if (std::filesystem::exists(weights)) return weights;
  const FileLock lock = kept_lock(weights);
  if (!std::filesystem::exists(weights)) train_in_job(sections, run_.job_folder, weights);
  return weights;
}

Json AttackCells::attacked(const std::string& weights, int64_t seed, const CellAttack& attack) const {
  const LoadedModel loaded = load_model(weights, "", make_overrides(attack.k, attack.capacity));
  MeasuredAttack how;
  how.attack = make_attack(attack, options_, seed);
  how.losses = attack.router_weight > 0;
  how.batch = options_.attack_batch;
  how.seed = static_cast<uint64_t>(seed);
  return measure_attack(loaded.model, test_images(loaded), how);
}

Json AttackCells::measure(const VisionModel& model, int64_t seed, const CellAttack& attack) const {
  const std::string weights = trained(model, seed);
  Json identity = {file_name(weights), attack.name, attack_settings(attack, options_),
                   attack.epsilon,     seed,        options_.attack_batch};
  if (attack.k || attack.capacity) identity.push_back(make_overrides(attack.k, attack.capacity));
  return kept_.result(identity, [&] { return attacked(weights, seed, attack); });
}

Json AttackCells::transfer(const VisionModel& source, const VisionModel& target, int64_t seed,
                           const CellAttack& attack) const {
  const std::string from = trained(source, seed), to = trained(target, seed);
  if (from == to) return measure(source, seed, attack);
  const Json identity = {
      "transfer", file_name(from),      file_name(to), attack.name, attack_settings(attack, options_), attack.epsilon,
      seed,       options_.attack_batch};
  return kept_.result(identity, [&] {
    const LoadedModel here = load_model(from), there = load_model(to);
    return measure_transfer(here.model, there.model, test_images(there), *make_attack(attack, options_, seed),
                            options_.attack_batch);
  });
}

Json AttackCells::damage(const VisionModel& model, int64_t seed, const CellDamage& attack) const {
  const std::string weights = trained(model, seed);
  const Json settings = damage_settings(attack, options_);
  const Json identity = {"damage", file_name(weights), settings, attack.epsilon, attack.capacity, seed, attack.batch};
  return kept_.result(identity, [&] {
    const LoadedModel loaded = load_model(weights, "", make_overrides({}, attack.capacity));
    const AttackContext context{.threat = {.epsilon = attack.epsilon / 255}, .seed = static_cast<uint64_t>(seed)};
    const auto pgd = attacks().make("pgd", settings, "attack", context);
    return measure_damage(loaded.model, test_images(loaded), *pgd, attack.batch);
  });
}

Json layer_summary(const Json& measured) {
  const Json& layers = measured.at("layers");
  Json summary = Json::object();
  for (const char* key : {"change", "change_moved", "change_chosen", "change_public", "of_chance", "dropped",
                          "attacked_dropped", "entropy", "attacked_entropy", "load_cv2", "attacked_load_cv2",
                          "importance_cv2", "attacked_importance_cv2", "redundancy", "redundancy_random"}) {
    double sum = 0;
    bool known = !layers.empty();
    for (const Json& layer : layers) {
      known = known && layer.at(key).is_number();
      if (known) sum += layer.at(key).get<double>();
    }
    summary[key] = known ? Json(sum / static_cast<double>(layers.size())) : Json();
  }
  summary["change_first"] = layers.empty() ? Json() : layers.front().at("change");
  summary["change_last"] = layers.empty() ? Json() : layers.back().at("change");
  return summary;
}

void add_measure(Json& job, const std::string& key, const Json& cell, const std::string& measure) {
  job[key] = cell.at(measure);
  if (cell.contains("outcomes")) job["outcomes"][key] = cell.at("outcomes").at(measure);
}

std::vector<double> attacked_epsilons(const CellOptions& options) {
  std::vector<double> found;
  for (const double epsilon : options.epsilons)
    if (epsilon > 0) found.push_back(epsilon);
  return found;
}

}  // namespace sparsight::robust_moe
