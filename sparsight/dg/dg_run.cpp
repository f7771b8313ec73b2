#include "sparsight/dg/dg_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/seed_hash.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/report/run_metrics.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight {
namespace {

const char* const kSource = "the protocol of DomainBed";

const DgModel& model_of(const DgRun& run) {
  const std::string name = !run.model.empty() ? run.model : has_small_images(run.set) ? "mnist_cnn" : "resnet50";
  return entry_named(name, dg_models(), "model");
}

// What the model or the algorithm has in place of DomainBed's default; of the model where both have one.
double protocol_default(const DgRun& run, const std::string& key, double usual) {
  if (const auto* of_model = find_default(model_of(run).defaults, key, run.set)) return of_model->value;
  if (const auto* of_algorithm = find_default(defaults_of_algorithm(run.algorithm), key, run.set))
    return of_algorithm->value;
  return usual;
}

int64_t steps_between_evaluations(const DgRun& run) {
  if (run.eval_every > 0) return run.eval_every;
  const auto usual = static_cast<double>(domain_set(run.set).eval_every);
  return static_cast<int64_t>(protocol_default(run, "train.eval_every", usual));
}

int64_t steps_of(const DgRun& run) {
  return run.steps > 0 ? run.steps : static_cast<int64_t>(protocol_default(run, "train.max_steps", 5001));
}

std::vector<Hyperparameter> hyperparameters_of(const DgRun& run) {
  return hyperparameters(run.algorithm, run.set, run.hparams_seed, run.trial_seed, model_of(run).defaults);
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
  for (const Hyperparameter& parameter : hyperparameters_of(run)) {
    const size_t dot = parameter.key.find('.');
    const std::string section = parameter.key.substr(0, dot), key = parameter.key.substr(dot + 1);
    if (section == "model" && model_name(model_of(run)) != "resnet") continue;  // others have no dropout of features
    config.set(section, key, parameter.value, kSource);
  }
}

// Accuracy by domain of an evaluation, in percent of 1: sums over classes.
std::map<std::string, double> accuracy_by_domain(const Json& eval) {
  std::map<std::string, std::pair<double, double>> counts;  // correct, images
  for (const Json& cell : eval.value("cells", Json::array())) {
    auto& [correct, images] = counts[cell.at("domain").get<std::string>()];
    correct += cell.at("accuracy").get<double>() * cell.at("images").get<double>();
    images += cell.at("images").get<double>();
  }
  std::map<std::string, double> accuracy;
  for (const auto& [domain, count] : counts) accuracy[domain] = count.first / count.second;
  return accuracy;
}

// The names of a run's environments, in order.
std::vector<std::string> environments_of(const std::string& folder) {
  const std::string checkpoint = RunFolder::open(folder).checkpoint("last");
  const Json state = try_parse_json_object(read_safetensors_metadata(checkpoint)["state"]).value_or(Json::object());
  std::vector<std::string> names;
  for (const Json& domain : state.at("data").at("domains"))
    if (const auto name = domain.get<std::string>(); name.ends_with("/in"))
      names.push_back(name.substr(0, name.size() - 3));
  return names;
}

// The mean training loss of the steps after `from` up to `to`.
Json mean_loss(const RunMetrics& log, int64_t from, int64_t to) {
  double sum = 0;
  int64_t lines = 0;
  for (const Json& line : log.train)
    if (line.at("step") > from && line.at("step") <= to && line.contains("loss"))
      sum += line.at("loss").get<double>(), ++lines;
  return lines > 0 ? Json(sum / static_cast<double>(lines)) : Json();
}

// What the evaluations after one step say, of training and test environments together.
struct StepEvaluations {
  std::map<std::string, double> accuracy;  // by domain
  Json epoch, training;                    // of the updates before them, or null
  double images = 0, seconds = 0, peak_mb = 0;

  void add(const Json& eval) {
    accuracy.merge(accuracy_by_domain(eval));
    epoch = eval.value("epoch", Json());
    if (eval.contains("training")) training = eval["training"];
    images += number(eval, "images").value_or(0), seconds += number(eval, "seconds").value_or(0);
    peak_mb = std::max(peak_mb, number(eval, "peak_memory_mb").value_or(0));
  }

  // Two keys are DomainBed's: the mean time of an update since the last evaluation, and the highest memory so far.
  void add_speed(Json& line, double peak_so_far_mb) const {
    const auto known = [](double value, double shown) { return value > 0 ? Json(shown) : Json(); };
    line["step_time"] = member(training, "step_seconds");
    line["mem_gb"] = known(peak_so_far_mb, peak_so_far_mb / 1024);
    line["images_per_s"] = member(training, "images_per_s");
    line["eval_images_per_s"] = known(seconds, images / seconds);
    line["eval_mem_gb"] = known(peak_mb, peak_mb / 1024);
  }
};

// What the "done" record of metrics.jsonl says of the model; null before the end of a run.
Json cost_in(const Json& done) {
  Json cost;
  for (const char* key : {"parameters", "active_parameters", "multiply_adds"}) {
    if (!member(done, key).is_number()) return Json();
    cost[key] = done[key];
  }
  return cost;
}

}  // namespace

uint32_t run_seed(const DgRun& run) {
  return seed_hash({run.set, run.algorithm, Json(run.test_envs), run.hparams_seed, run.trial_seed});
}

Json dg_config(const DgRun& run) {
  domain_set(run.set);
  algorithms().get(run.algorithm);
  Config config;
  for (const std::string& setting : model_of(run).settings) config.set(setting);
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
  set("train", "max_steps", steps_of(run));
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
  Json arguments = {{"dataset", run.set},         {"algorithm", run.algorithm},   {"model", model_of(run).name},
                    {"test_envs", run.test_envs}, {"trial_seed", run.trial_seed}, {"hparams_seed", run.hparams_seed},
                    {"steps", steps_of(run)}};
  if (!run.variation.empty()) arguments["variation"] = join(run.variation, " ");
  return arguments;
}

void check_same_run(const DgRun& run, const std::string& folder) {
  const std::string file = folder + "/config.toml";
  const Config written = Config::from_text(read_file(file, kMaxConfigBytes), file);
  const Json before = resolve(written, config_sections()).flatten(), now = dg_config(run).flatten();
  for (const auto& [key, value] : now.items()) {
    if (key == "/run/seed") continue;  // follows from the rest
    // Training decides what "auto" is; without weights to start from it is "router".
    const bool same_gates =
        key == "/moe/gates" && (value == "auto" || (before[key] == "auto" && now["/train/init_from"] == ""));
    if (same_gates || (before.contains(key) && before[key] == value)) continue;
    fail(printable(folder), " holds another run: its ", key.substr(1), " is ",
         before.contains(key) ? before[key].dump() : "not set", ", not ", value.dump(),
         "; choose another folder, or repeat the arguments of that run");
  }
}

std::vector<Json> dg_results(const DgRun& run, const std::string& folder) {
  const RunMetrics log = read_run_metrics(folder + "/metrics.jsonl");
  std::map<int64_t, StepEvaluations> evaluations;  // by step
  for (const Json& eval : log.evals)
    if (eval.at("split") != "test") evaluations[eval.at("step").get<int64_t>()].add(eval);
  const Json cost = cost_in(log.done);
  Json hparams = Json::object();
  for (const Hyperparameter& parameter : hyperparameters_of(run)) hparams[parameter.name] = parameter.value;
  std::vector<Json> lines;
  int64_t before = 0;
  const std::vector<std::string> names = environments_of(folder);
  double peak_mb = 0;
  for (const auto& [step, evaluated] : evaluations) {
    const std::map<std::string, double>& accuracy = evaluated.accuracy;
    peak_mb = std::max({peak_mb, evaluated.peak_mb, number(evaluated.training, "peak_memory_mb").value_or(0)});
    Json line = Json::object();
    for (size_t e = 0; e < names.size(); ++e)
      for (const char* half : {"in", "out"}) {
        const auto found = accuracy.find(names[e] + "/" + half);
        if (found != accuracy.end()) line[cat("env", e, "_", half, "_acc")] = found->second;
      }
    line["step"] = step - 1;
    line["epoch"] = evaluated.epoch;
    line["loss"] = mean_loss(log, before, step);
    evaluated.add_speed(line, peak_mb);
    line["args"] = dg_arguments(run);
    line["hparams"] = hparams;
    if (!cost.is_null()) line["cost"] = cost;
    lines.push_back(std::move(line));
    before = step;
  }
  return lines;
}

std::vector<Json> train_dg(const DgRun& run, const std::string& folder) {
  std::ostringstream summary;  // results.jsonl says it
  if (std::filesystem::exists(folder + "/config.toml")) {
    check_same_run(run, folder);
    resume_training(folder, {}, summary);
  } else {
    start_training(dg_config(run), folder, /*overwrite=*/false, summary);
  }
  std::string text;
  const std::vector<Json> lines = dg_results(run, folder);
  for (const Json& line : lines) text += line.dump() + "\n";
  write_file_atomically(folder + "/results.jsonl", text);
  return lines;
}

}  // namespace sparsight
