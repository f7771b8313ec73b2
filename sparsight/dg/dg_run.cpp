#include "sparsight/dg/dg_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/domainbed.h"
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

bool is_gmoe(const DgRun& run) { return model_of(run).name.starts_with("gmoe"); }

int64_t steps_between_evaluations(const DgRun& run) {
  if (run.eval_every > 0) return run.eval_every;
  if (run.set == "domain_net") return is_gmoe(run) ? 500 : 1000;
  return has_small_images(run.set) || run.set == "folder" || run.set.starts_with("wilds_") ? 100 : 300;
}

int64_t steps_of(const DgRun& run) {
  if (run.steps > 0) return run.steps;
  return run.set == "domain_net" && is_gmoe(run) ? 15001 : 5001;
}

// The defaults of GMoE's authors for photographs, in their code; where they name no dataset, of the others.
struct GmoeDefaults {
  const char* set;
  double lr, weight_decay;
};
constexpr GmoeDefaults kGmoeDefaults[] = {{"pacs", 3e-5, 1e-6},        {"vlcs", 3e-5, 1e-6},
                                          {"office_home", 1e-5, 1e-6}, {"terra_incognita", 5e-5, 1e-4},
                                          {"domain_net", 5e-5, 0},     {"cub_dg", 5e-5, 0}};

std::vector<Hyperparameter> hyperparameters_of(const DgRun& run) {
  std::vector<Hyperparameter> list = hyperparameters(run.algorithm, run.set, run.hparams_seed, run.trial_seed);
  if (!is_gmoe(run) || has_small_images(run.set)) return list;
  GmoeDefaults defaults{"", 3e-5, 0};
  for (const GmoeDefaults& known : kGmoeDefaults)
    if (run.set == known.set) defaults = known;
  for (Hyperparameter& parameter : list) {
    if (parameter.name == "lr") parameter.fallback = defaults.lr;
    if (parameter.name == "weight_decay") parameter.fallback = defaults.weight_decay;
    if (run.hparams_seed == 0) parameter.value = parameter.fallback;
  }
  return list;
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
  if (run.set.starts_with("wilds_")) train.insert(train.begin(), resize);
  config.set("transforms", "train", train, kSource);
  config.set("transforms", "eval", Json::array({resize, normalize}), kSource);
  config.set("transforms", "val_augment", true, kSource);  // its transforms belong to the environment
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

}  // namespace

const std::vector<DgModel>& dg_models() {
  static const std::vector<DgModel> all = [] {
    const std::vector<std::string> small = {"model.name=vit", "model.size=small", "model.patch=16"};
    std::vector<std::string> gmoe = small;
    gmoe.insert(gmoe.end(), {"model.drop_path=0.1", "moe.blocks=[8,10]", "moe.experts=6", "router.name=cosine",
                             "experts.dropout=0.1", "capacity.factor=1.5", "capacity.eval_factor=0",
                             "capacity.rounding=floor_per_choice", "capacity.priority=max_gate"});
    std::vector<std::string> parity = gmoe;  // as the authors' code, also in evaluation
    parity.insert(parity.end(),
                  {"capacity.eval_factor=1.5", "losses.vmoe_load_of=scores", "losses.unbiased_variance=true"});
    return std::vector<DgModel>{{"mnist_cnn", "DomainBed's CNN for images of 28 x 28 pixels", {"model.name=mnist_cnn"}},
                                {"resnet18",
                                 "ResNet-18 with frozen batch norm",
                                 {"model.name=resnet", "model.depth=18", "model.frozen_batch_norm=true"}},
                                {"resnet50",
                                 "ResNet-50 with frozen batch norm",
                                 {"model.name=resnet", "model.depth=50", "model.frozen_batch_norm=true"}},
                                {"vit", "ViT-S/16", small},
                                {"gmoe", "GMoE-S/16: 6 experts in blocks 8 and 10, cosine router", gmoe},
                                {"gmoe_parity", "GMoE-S/16 with everything as in its authors' code", parity}};
  }();
  return all;
}

uint32_t run_seed(const DgRun& run) {
  return seed_hash({run.set, run.algorithm, Json(run.test_envs), run.hparams_seed, run.trial_seed});
}

Json dg_config(const DgRun& run) {
  const std::vector<std::string> sets = domainbed_names();
  position_of(run.set, sets, "data set");
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
  for (const std::string& setting : run.overrides) config.set(setting);
  return resolve(config, config_sections());
}

Json dg_arguments(const DgRun& run) {
  return {{"dataset", run.set},         {"algorithm", run.algorithm},   {"model", model_of(run).name},
          {"test_envs", run.test_envs}, {"trial_seed", run.trial_seed}, {"hparams_seed", run.hparams_seed},
          {"steps", steps_of(run)}};
}

void check_same_run(const DgRun& run, const std::string& folder) {
  const std::string file = folder + "/config.toml";
  const Config written = Config::from_text(read_file(file, kMaxConfigBytes), file);
  const Json before = resolve(written, config_sections()).flatten(), now = dg_config(run).flatten();
  for (const auto& [key, value] : now.items()) {
    if (key == "/run/seed") continue;                              // follows from the rest
    const bool upcycled = key == "/moe/gates" && value == "auto";  // training then sets it
    if (upcycled || (before.contains(key) && before[key] == value)) continue;
    fail(printable(folder), " holds another run: its ", key.substr(1), " is ",
         before.contains(key) ? before[key].dump() : "not set", ", not ", value.dump(),
         "; choose another folder, or repeat the arguments of that run");
  }
}

std::vector<Json> dg_results(const DgRun& run, const std::string& folder) {
  const RunMetrics log = read_run_metrics(folder + "/metrics.jsonl");
  std::map<int64_t, std::map<std::string, double>> accuracies;  // by step
  std::map<int64_t, Json> epochs;
  for (const Json& eval : log.evals) {
    if (eval.at("split") == "test") continue;
    const auto step = eval.at("step").get<int64_t>();
    accuracies[step].merge(accuracy_by_domain(eval));
    epochs[step] = eval.value("epoch", Json());
  }
  Json hparams = Json::object();
  for (const Hyperparameter& parameter : hyperparameters_of(run)) hparams[parameter.name] = parameter.value;
  std::vector<Json> lines;
  int64_t before = 0;
  const std::vector<std::string> names = environments_of(folder);
  for (const auto& [step, accuracy] : accuracies) {
    Json line = Json::object();
    for (size_t e = 0; e < names.size(); ++e)
      for (const char* half : {"in", "out"}) {
        const auto found = accuracy.find(names[e] + "/" + half);
        if (found != accuracy.end()) line[cat("env", e, "_", half, "_acc")] = found->second;
      }
    line["step"] = step - 1;
    line["epoch"] = epochs[step];
    line["loss"] = mean_loss(log, before, step);
    line["args"] = dg_arguments(run);
    line["hparams"] = hparams;
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
