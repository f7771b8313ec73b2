#include "sparsight/papers/pmoe/figures/digit_runs.h"

#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/data/sets/mnist.h"
#include "sparsight/reproduce/data_choice.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kSide = 28, kGrid = 4;
constexpr const char* kShare = "share samples and routers";

const DataChoice& mnist() {
  static const DataChoice choice{"mnist", {}, "glyphs for MNIST", [](const std::string& folder) {
                                   return find_mnist_part(folder, "train").images.defined();
                                 }};
  return choice;
}

// Cached, because reading MNIST takes longer than many jobs.
const CompositeCells& cells_for(const CompositeOptions& options) {
  static std::map<std::string, CompositeCells> known;
  const std::string key = options.cells == "mnist" ? options.root : "glyphs " + std::to_string(options.seed);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, composite_cells(options)).first->second;
}

}  // namespace

DigitSets digit_sets(const FigureRun& run, int64_t train, int64_t test, uint64_t seed) {
  CompositeOptions options;
  options.grid = kGrid;
  options.train = train;
  options.test = test;
  options.seed = static_cast<int64_t>(seed);
  choose_cells(options, run);
  const DataSplits splits = composite_of(options, cells_for(options));
  return {cut_into_patches(*splits.train, kSide, train), cut_into_patches(*splits.test, kSide, test)};
}

void choose_cells(CompositeOptions& options, const FigureRun& run) {
  if (has_real(mnist(), run))
    options.root = real_folder(mnist(), run);
  else
    options.cells = "glyphs";
}

std::string digits_substitute(const FigureRun& run) { return substitute_for(mnist(), run); }

PatchSet digit_shape() {
  PatchSet shape;
  shape.table = at::empty({0, kSide * kSide});
  shape.patches = kGrid * kGrid;
  shape.classes = 2;
  return shape;
}

DigitScale digit_scale(const FigureRun& run, int64_t trials) {
  if (run.scale == Scale::paper) return {trials, 1000, 150};
  if (run.scale == Scale::small) return {std::min<int64_t>(trials, 3), 1000, 150};
  return {1, 100, 2};
}

Json digit_job(const Json& axes, int64_t trial, const std::string& preset, const TwoLayerSetting& setting,
               const FigureRun& run, const Json& more) {
  TwoLayerSetting copy = setting;
  copy.sgd.epochs = std::min(copy.sgd.epochs, digit_scale(run, 1).epochs);
  OptionSet constants;
  copy.declare(constants);
  Json job = axes;
  job["seed"] = trial;
  job.update(more);
  job["trials"] = preset == "code" ? kShare : "draw all anew";
  job["test"] = digit_scale(run, 1).test;
  job["setting"] = values(constants);
  return job;
}

TwoLayerSetting job_setting(const Json& job) {
  TwoLayerSetting setting;
  OptionSet constants;
  setting.declare(constants);
  assign(constants, job.at("setting"), "setting");
  return setting;
}

uint64_t shared_seed(const Json& job) { return job.at("trials") == kShare ? 0 : job.at("seed").get<uint64_t>(); }

DigitTrial train_digit_job(const Json& job, const FigureRun& run) {
  const uint64_t seed = job.at("seed"), shared = shared_seed(job);
  const DigitSets sets = digit_sets(run, job.at("samples"), job.at("test"), shared);
  return {train_two_layer(job_setting(job), sets.train, sets.test, {seed, shared}), sets.test};
}

Json accuracy_of(const DigitTrial& trial) {
  const TwoLayerResult& result = trial.result;
  return {{"accuracy", 100 * result.accuracy},
          {"epochs", result.epochs.size()},
          {"zero_error", result.zero_error ? 100 : 0},
          {"other_threshold", 100 * result.other_accuracy},
          {"test_loss", result.test_loss}};
}

std::vector<Measure> accuracy_measures() {
  return {{"accuracy", "test accuracy (%)", 1},
          {"epochs", "epochs", 0},
          {"zero_error", "trials that end with zero training error (%)", 0},
          {"other_threshold", "test accuracy (%) at the other threshold (0.5 or 0)", 1},
          {"test_loss", "test loss", 3}};
}

}  // namespace sparsight::pmoe
