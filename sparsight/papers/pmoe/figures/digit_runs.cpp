#include "sparsight/papers/pmoe/figures/digit_runs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kSide = 28, kGrid = 4;
constexpr const char* kShare = "share samples and routers";

// Cached, because reading MNIST takes longer than many jobs.
const CompositeCells& cells_for(const CompositeOptions& options) {
  static std::map<std::string, CompositeCells> known;
  const std::string key = options.cells == "mnist" ? options.root : "glyphs " + std::to_string(options.seed);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, composite_cells(options)).first->second;
}

}  // namespace

const std::vector<DataChoice>& digit_data() {
  static const std::vector<DataChoice> choices = {{"mnist", "glyphs for MNIST"}};
  return choices;
}

DigitSets digit_sets(const FigureRun& run, int64_t train, int64_t test, uint64_t seed) {
  CompositeOptions options;
  options.grid = kGrid;
  options.train = train;
  options.test = test;
  options.seed = static_cast<int64_t>(seed);
  choose_cells(options, run);
  const DataSplits splits = compose_cells(options, cells_for(options));
  return {cut_into_patches(*splits.train, kSide, train), cut_into_patches(*splits.test, kSide, test)};
}

void choose_cells(CompositeOptions& options, const FigureRun& run) {
  if (run.data.empty())
    options.cells = "glyphs";
  else
    options.root = real_folder(digit_data()[0], run);
}

PatchSet digit_shape() {
  PatchSet shape;
  shape.table = at::empty({0, kSide * kSide});
  shape.patches = kGrid * kGrid;
  shape.classes = 2;
  return shape;
}

void DigitOptions::declare(OptionSet& set) {
  repeats.declare(set);
  set.flag("share", &share, "all trials have the data and routers of the first, as in the authors' code");
  set.integer("test", &test, {1, 1000000}, "test samples");
  set.real("lr", &sgd.lr, {0, 1000}, "learning rate");
  set.integer("batch", &sgd.batch, {1, 1000000}, "samples per step");
  set.integer("epochs", &sgd.epochs, {1, 1000000}, "most epochs of a training");
  set.real("router_lr", &sgd.router_lr, {0, 1000}, "learning rate of separately trained routers");
  set.integer("router_batch", &sgd.router_batch, {1, 1000000}, "samples per step of separately trained routers");
  set.integer("router_epochs", &sgd.router_epochs, {0, 1000000}, "epochs of separately trained routers");
  set.flag("test_epochs", &test_epochs, "measure the test accuracy after every epoch, for trials.jsonl");
}

DigitOptions digit_options(Scale scale, int64_t trials) {
  DigitOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, std::min<int64_t>(trials, 3), trials);
  options.test = by_scale<int64_t>(scale, 100, 1000, 1000);
  options.sgd.epochs = by_scale<int64_t>(scale, 2, 150, 150);
  return options;
}

void declare_samples(OptionSet& set, std::vector<int64_t>* samples) {
  set.integers("samples", samples, {2, 1000000}, "numbers of training samples");
}

void declare_router_samples(OptionSet& set, DigitOptions& options) {
  set.integer("router_samples", &options.sgd.router_samples, {0, 1000000},
              "samples that separately trained routers are trained on (N_r), the first ones; 0: all");
}

TwoLayerSetting cnn_setting(const std::string& preset, int64_t filters, const DigitOptions& options) {
  return digit_setting(preset, "cnn", {1, filters, kGrid * kGrid}, options);
}

TwoLayerSetting digit_setting(const std::string& preset, const std::string& form, const NetworkSize& size,
                              const DigitOptions& options) {
  TwoLayerSetting setting = two_layer_preset(preset, form, digit_shape());
  const std::string stop = setting.sgd.stop;
  setting.experts = size.experts;
  setting.filters = size.filters;
  setting.patches = size.patches;
  if (preset == "paper") setting.init_std = 1 / std::sqrt(static_cast<double>(size.experts * size.filters));
  setting.sgd = options.sgd;
  setting.sgd.stop = stop;
  return setting;
}

std::vector<Json> digit_jobs(const Json& axes, const TwoLayerSetting& setting, const DigitOptions& options,
                             const Json& more) {
  TwoLayerSetting copy = setting;
  OptionSet constants;
  copy.declare(constants);
  std::vector<Json> jobs;
  for (int64_t trial = 0; trial < options.repeats.trials; ++trial) {
    Json job = axes;
    job["seed"] = options.repeats.seed(trial);
    job.update(more);
    job["trials"] = options.share ? kShare : "draw all anew";
    if (options.share) job["shared_seed"] = options.repeats.first_seed;
    job["test"] = options.test;
    job["test_epochs"] = options.test_epochs;
    job["setting"] = values(constants);
    jobs.push_back(job);
  }
  return jobs;
}

TwoLayerSetting job_setting(const Json& job) {
  TwoLayerSetting setting;
  OptionSet constants;
  setting.declare(constants);
  assign(constants, job.at("setting"), "setting");
  return setting;
}

uint64_t shared_seed(const Json& job) {
  return (job.contains("shared_seed") ? job.at("shared_seed") : job.at("seed")).get<uint64_t>();
}

DigitTrial train_digit_job(const Json& job, const FigureRun& run) {
  const uint64_t seed = job.at("seed"), shared = shared_seed(job);
  const DigitSets sets = digit_sets(run, job.at("samples"), job.at("test"), shared);
  return {train_two_layer(job_setting(job), sets.train, sets.test, {seed, shared}, job.at("test_epochs")), sets.test};
}

Json accuracy_json(const DigitTrial& trial) {
  const TwoLayerResult& result = trial.result;
  Json losses = Json::array(), wrong = Json::array(), first;
  for (const PatchEpoch& epoch : result.epochs) {
    losses.push_back(epoch.loss);
    wrong.push_back(epoch.wrong);
    if (epoch.wrong == 0 && first.is_null()) first = epoch.epoch;
  }
  Json log = {{"train_loss", losses}, {"train_errors", wrong}};
  if (!result.test_accuracies.empty()) log["test_accuracy"] = result.test_accuracies;
  return {{"accuracy", 100 * result.accuracy},
          {"epochs", first},
          {"zero_error", first.is_null() ? 0 : 100},
          {"one_signed", result.one_signed ? 100 : 0},
          {"other_threshold", 100 * result.other_accuracy},
          {"test_loss", result.test_loss},
          {"log", log}};
}

std::vector<Measure> accuracy_measures() {
  return {{"accuracy", "test accuracy (%)", 1, {"test", true}},
          {"epochs", "epochs to zero training error", 0},
          {"zero_error", "trials that reach zero training error (%)", 0},
          {"one_signed", "trials whose output weights all have one sign (%)", 0},
          {"other_threshold", "test accuracy (%) at the other threshold (0.5 or 0)", 1, {"test", true}},
          {"test_loss", "test loss", 3}};
}

}  // namespace sparsight::pmoe
