#include "sparsight/dg/dg_run.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/named_once.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/dg/results/results.h"
#include "sparsight/dg/titles.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight {
namespace {

const char* const kSource = "the protocol of DomainBed";

// What the model or the algorithm has in place of DomainBed's default; of the model where both have one.
double protocol_default(const DgRun& run, const std::string& key, double usual) {
  if (const auto* of_model = find_default(dg_model(run).defaults, key, run.set)) return of_model->value;
  if (const auto* of_algorithm = find_default(defaults_of_algorithm(run.algorithm), key, run.set))
    return of_algorithm->value;
  return usual;
}

int64_t steps_between_evaluations(const DgRun& run) {
  if (run.eval_every > 0) return run.eval_every;
  const auto usual = static_cast<double>(domain_set(run.set).eval_every);
  return static_cast<int64_t>(protocol_default(run, "train.eval_every", usual));
}

int64_t training_steps(const DgRun& run) {
  return run.steps > 0 ? run.steps : static_cast<int64_t>(protocol_default(run, "train.max_steps", 5001));
}

// DomainBed's augmentation of the training environments, and its resize of the others.
void set_transforms(Config& config, const DgRun& run) {
  if (has_small_images(run.set)) return;
  const int64_t size = run.image_size;
  const Json resize = {{"op", "resize"}, {"size", {size, size}}};
  const Json crop = {{"op", "random_resized_crop"}, {"size", size}, {"scale", {0.7, 1.0}}};
  const Json jitter = {
      {"op", "color_jitter"}, {"brightness", 0.3}, {"contrast", 0.3}, {"saturation", 0.3}, {"hue", 0.3}};
  const Json grayscale = {{"op", "grayscale"}, {"probability", 0.1}};
  const Json normalize = {{"op", "normalize"}, {"preset", "imagenet"}};
  Json train = Json::array({crop, {{"op", "flip"}}, jitter, grayscale, normalize});
  if (domain_set(run.set).resized_first) train.insert(train.begin(), resize);
  config.set("transforms", "train", train, kSource);
  config.set("transforms", "eval", Json::array({resize, normalize}), kSource);
  config.set("transforms", "val_augment", true, kSource);  // its transforms belong to the environment
}

// The same settings, which overrides may replace or make needless.
Config without_origins(const Config& config) {
  Config copy;
  for (const auto& [section, table] : config.tree().items())
    for (const auto& [key, value] : table.items()) copy.set(section, key, value, kSource);
  return copy;
}

std::string model_name(const DgModel& model) {
  for (const std::string& setting : model.settings)
    if (setting.starts_with("model.name=")) return setting.substr(std::string("model.name=").size());
  return "vit";
}

void set_hyperparameters(Config& config, const DgRun& run) {
  for (const Hyperparameter& parameter : run_hyperparameters(run)) {
    const size_t dot = parameter.key.find('.');
    const std::string section = parameter.key.substr(0, dot), key = parameter.key.substr(dot + 1);
    if (section == "model" && model_name(dg_model(run)) != "resnet") continue;  // others have no dropout of features
    config.set(section, key, parameter.value, kSource);
  }
}

// A run says what it is of by its own names, not by what its settings make of them.
void check_overrides(const std::vector<std::string>& overrides) {
  static const std::vector<std::pair<std::string, std::string>> kOptions{
      {"algorithm.name", "--algorithm"}, {"data.name", "--dataset"}, {"data.set", "--dataset"},
      {"data.root", "--data"},           {"data.trial", "--trial"},  {"data.test_envs", "--test-envs"},
      {"model.name", "--model"}};
  for (const std::string& setting : overrides)
    for (const auto& [key, option] : kOptions)
      if (setting.starts_with(key + "=")) fail_usage("--set ", printable(setting), ": dg has ", option, " for it");
}

}  // namespace

const DgModel& dg_model(const DgRun& run) {
  const std::string name = !run.model.empty() ? run.model : has_small_images(run.set) ? "mnist_cnn" : "resnet50";
  return entry_named(name, dg_models(), "model");
}

std::vector<Hyperparameter> run_hyperparameters(const DgRun& run) {
  return hyperparameters(run.algorithm, run.set, run.hparams_seed, run.trial_seed, dg_model(run).defaults);
}

std::vector<Hyperparameter> all_run_hyperparameters(const DgRun& run) {
  return all_hyperparameters(run.algorithm, run.set, run.hparams_seed, run.trial_seed, dg_model(run).defaults);
}

uint32_t run_seed(const DgRun& run) {
  return seed_hash({dataset_title(run.set), algorithms().title(run.algorithm), Json(run.test_envs), run.hparams_seed,
                    run.trial_seed});
}

Json dg_config(const DgRun& run) {
  domain_set(run.set);
  algorithms().get(run.algorithm);
  check_named_once(run.test_envs, "test environment");
  check_overrides(run.overrides);
  Config config;
  for (const std::string& setting : dg_model(run).settings) config.set(setting);
  const auto set = [&](const char* section, const char* key, const Json& value) {
    config.set(section, key, value, kSource);
  };
  set("run", "seed", run_seed(run));
  set("data", "name", "domainbed");
  set("data", "set", run.set);
  set("data", "root", run.root);
  set("data", "test_envs", run.test_envs);
  set("data", "trial", run.trial_seed);
  set("loader", "per_domain", true);
  set("loader", "sampling", "replacement");
  set("loader", "eval_batch", 64);
  set("algorithm", "name", run.algorithm);
  set("optimizer", "name", "adam");
  set("train", "no_decay", Json::array());  // every parameter decays
  set("schedule", "name", "constant");
  set("train", "max_steps", training_steps(run));
  set("train", "epochs", 1000000);
  set("train", "eval_every", steps_between_evaluations(run));
  set("train", "eval_offset", 1);  // after updates 1, 301, ...: its steps 0, 300, ...
  set_transforms(config, run);
  set_hyperparameters(config, run);
  const std::vector<Section> sections = config_sections();
  for (const std::vector<std::string>& settings : {run.overrides, run.variation})
    config = overridden(without_origins(config), settings, sections);
  return resolve(config, sections);
}

Json dg_arguments(const DgRun& run) {
  Json arguments = {{"dataset", run.set},          {"algorithm", run.algorithm},   {"model", dg_model(run).name},
                    {"test_envs", run.test_envs},  {"trial_seed", run.trial_seed}, {"hparams_seed", run.hparams_seed},
                    {"steps", training_steps(run)}};
  if (!run.variation.empty()) arguments["variation"] = join(run.variation, " ");
  if (run.single_source) arguments["single_source"] = true;
  return arguments;
}

void check_same_run(const Json& config, const std::string& folder) {
  const std::string file = folder + "/config.toml";
  const Config written = Config::from_text(read_file(file, kMaxConfigBytes), file);
  const Json before = resolve(written, config_sections()).flatten(), now = config.flatten();
  for (const auto& [key, value] : now.items()) {
    if (key == "/run/seed") continue;  // follows from the rest
    // Training decides what "auto" is; without weights to start from it is "router".
    const bool from_weights = !now["/train/init_from"].get<std::string>().empty();
    const bool same_gates = key == "/moe/gates" && (value == "auto" || (before[key] == "auto" && !from_weights));
    if (same_gates || (before.contains(key) && before[key] == value)) continue;
    fail(printable(folder), " holds another run: its ", key.substr(1), " is ",
         before.contains(key) ? before[key].dump() : "not set", ", not ", value.dump(),
         "; choose another folder, or repeat the arguments of that run");
  }
}

std::vector<Json> train_dg(const DgRun& run, const std::string& folder) {
  const Json config = dg_config(run);
  std::ostringstream summary;  // results.jsonl says it
  if (std::filesystem::exists(folder + "/config.toml")) {
    check_same_run(config, folder);
    resume_training(folder, {.go_on = GoOn::same_command}, summary);
  } else {
    start_training(config, folder, /*overwrite=*/false, summary, GoOn::same_command);
  }
  std::vector<Json> lines = dg_results(run, config, folder);
  write_file_atomically(folder + "/results.jsonl", dg_log_text(lines));
  return lines;
}

}  // namespace sparsight
