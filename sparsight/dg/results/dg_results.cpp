// The lines of results.jsonl from a run folder.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/dg/data_identity.h"
#include "sparsight/dg/dg_run.h"
#include "sparsight/dg/hyperparameters.h"
#include "sparsight/dg/titles.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {
namespace {

constexpr size_t kMaxResultBytes = size_t{256} << 20;

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
std::vector<std::string> read_environments(const std::string& folder) {
  const std::string checkpoint = RunFolder::open(folder).checkpoint("last");
  const Json state = try_parse_json_object(read_checkpoint_metadata(checkpoint)["state"]).value_or(Json::object());
  std::vector<std::string> names;
  for (const Json& domain : state.at("data").at("domains"))
    if (const auto name = domain.get<std::string>(); name.ends_with("/in"))
      names.push_back(name.substr(0, name.size() - 3));
  return names;
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

  // env{i}_in_acc and env{i}_out_acc.
  void add_accuracies(Json& line, const std::vector<std::string>& names) const {
    for (size_t e = 0; e < names.size(); ++e)
      for (const char* half : {"in", "out"}) {
        const auto found = accuracy.find(names[e] + "/" + half);
        if (found != accuracy.end()) line[cat("env", e, "_", half, "_acc")] = found->second;
      }
  }

  // Means of the updates since the last evaluation, and the highest memory so far.
  void add_training(Json& line, double peak_so_far_mb) const {
    const auto known = [](double value, double shown) { return value > 0 ? Json(shown) : Json(); };
    line["loss"] = member(training, "loss");
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

// The value of the setting "section.key"; null where the configuration has none.
Json value_at(const Json& config, const std::string& key) {
  const size_t dot = key.find('.');
  return member(member(config, key.substr(0, dot)), key.substr(dot + 1));
}

// All that are drawn. Where a setting follows one, what trained, also where an override replaced it.
Json hparams_json(const DgRun& run, const Json& config) {
  Json hparams = Json::object();
  for (const Hyperparameter& parameter : all_run_hyperparameters(run)) {
    const Json used = parameter.key.empty() ? Json() : value_at(config, parameter.key);
    hparams[parameter.name] = used.is_null() ? parameter.value : used;
  }
  // DomainBed draws these two as false, and they choose the model; here the model says what it is.
  const Json& model = member(config, "model");
  const bool is_resnet = text(model, "name") == "resnet";
  if (hparams.contains("resnet18")) hparams["resnet18"] = is_resnet && member(model, "depth") == 18;
  if (hparams.contains("freeze_bn")) hparams["freeze_bn"] = is_resnet && member(model, "frozen_batch_norm") == true;
  return hparams;
}

// The identity in the folder's results.jsonl: a run that is done needs its data no more.
std::string written_identity(const std::string& folder) {
  const std::string file = folder + "/results.jsonl";
  if (!std::filesystem::exists(file)) return "";
  std::istringstream text(read_file(file, kMaxResultBytes));
  std::string line;
  std::getline(text, line);
  std::string ignored;
  return sparsight::text(member(try_parse_checked_object(line, ignored).value_or(Json()), "args"), "data");
}

Json full_arguments(const DgRun& run, const Json& config, const std::string& folder,
                    const std::vector<std::string>& environments) {
  Json arguments = dg_arguments(run);
  arguments["dataset"] = dataset_title(run.set);
  arguments["algorithm"] = algorithms().title(run.algorithm);
  arguments["steps"] = value_at(config, "train.max_steps");
  arguments["settings"] = dg_settings(run, config);
  const std::string written = written_identity(folder);
  arguments["data"] = written.empty() ? data_identity(run) : written;
  arguments["environments"] = environments;
  return arguments;
}

}  // namespace

Json dg_settings(const DgRun& run, const Json& config) {
  std::map<std::string, Json> values;  // sorted
  for (const char* key : {"train.max_steps", "train.eval_every"}) values[key] = value_at(config, key);
  for (const std::string& setting : run.overrides)
    values[setting.substr(0, setting.find('='))] = value_at(config, setting.substr(0, setting.find('=')));
  if (!has_small_images(run.set)) values["image_size"] = run.image_size;
  Json settings = Json::object();
  for (const auto& [key, value] : values) settings[key] = value;
  return settings;
}

std::vector<Json> dg_results(const DgRun& run, const Json& config, const std::string& folder) {
  const RunMetrics log = read_run_metrics(folder + "/metrics.jsonl");
  if (!log.damage.empty())  // the results would lack an evaluation
    fail(printable(folder), ": ", log.damage, "; remove the folder and run the same command again to train anew");
  std::map<int64_t, StepEvaluations> evaluations;  // by step
  StepEvaluations result;                          // of the weights that the algorithm ended with
  Json result_weights;
  for (const Json& eval : log.evals) {
    if (eval.at("split") == "test") continue;
    if (member(eval, "result") == true)
      result.add(eval), result_weights = eval.at("weights");
    else
      evaluations[eval.at("step").get<int64_t>()].add(eval);
  }
  const Json cost = cost_in(log.done), hparams = hparams_json(run, config);
  const std::vector<std::string> names = read_environments(folder);
  const Json arguments = full_arguments(run, config, folder, names);
  std::vector<Json> lines;
  double peak_mb = 0;
  const auto add_line = [&](int64_t step, const StepEvaluations& evaluated) {
    peak_mb = std::max({peak_mb, evaluated.peak_mb, number(evaluated.training, "peak_memory_mb").value_or(0)});
    Json line = Json::object();
    evaluated.add_accuracies(line, names);
    line["step"] = step - 1;
    line["epoch"] = evaluated.epoch;
    evaluated.add_training(line, peak_mb);
    line["args"] = arguments;
    line["hparams"] = hparams;
    if (!cost.is_null()) line["cost"] = cost;
    lines.push_back(std::move(line));
  };
  for (const auto& [step, evaluated] : evaluations) add_line(step, evaluated);
  if (!result_weights.is_null() && !evaluations.empty()) {
    add_line(evaluations.rbegin()->first, result);
    lines.back()["result_weights"] = result_weights;
  }
  return lines;
}

}  // namespace sparsight
