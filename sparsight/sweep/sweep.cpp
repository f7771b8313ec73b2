#include "sparsight/sweep/sweep.h"

#include <filesystem>
#include <map>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

namespace sparsight {
namespace {

constexpr const char* kRun = "run";  // in the folder of a job

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// The record of the validation split at the step whose weights the run keeps, else the last one; null without any.
Json validation_record(const RunMetrics& log) {
  const std::optional<double> kept = number(log.done, "best_step");
  Json record;
  for (const Json& eval : log.evals) {
    if (text(eval, "split") != "val" || !is_reported(eval)) continue;
    record = eval;
    if (kept && number(eval, "step") == kept) break;
  }
  return record;
}

Json scores_of_run(const std::string& run) {
  const RunMetrics log = read_run_metrics(run + "/metrics.jsonl");
  if (!log.damage.empty()) fail(printable(run), "/metrics.jsonl: ", log.damage);
  const Json test = final_eval(log, /*with_layers=*/false), validation = validation_record(log);
  const bool has_test = text(test, "split") == "test" && text(test, "missing_split") != "test",
             has_validation = text(test, "missing_split") != "validation";  // else "val" is the test split
  return {{"validation", has_validation ? optional_number(number(validation, score_name(validation).key)) : Json()},
          {"validation_images", number(validation, "images").value_or(0)},
          {"test", has_test ? optional_number(number(test, score_name(test).key)) : Json()},
          {"test_images", number(test, "images").value_or(0)}};
}

Json train_trial(const Json& config, const std::string& job_folder) {
  const std::string run = job_folder + "/" + kRun;
  std::ostringstream ignored;
  if (std::filesystem::exists(run + "/config.toml"))
    resume_training(run, {.go_on = GoOn::same_command}, ignored);
  else
    start_training(config, run, /*overwrite=*/false, ignored, GoOn::same_command);
  return scores_of_run(run);
}

Json job_settings(const Sweep& sweep, const SweepPoint& point, int64_t trial, std::optional<int64_t> epochs) {
  return {{"config", trial_config(sweep, point, trial, epochs)}};
}

// "optimizer.lr=0.001 router.k=2, seed 1"
std::string training_text(const std::vector<SweepAxis>& axes, const Json& config) {
  std::string text;
  for (const SweepAxis& axis : axes) {
    const size_t dot = axis.key.find('.');
    const Json& section = member(config, axis.key.substr(0, dot));
    text += axis.key + "=" + json_text(member(section, axis.key.substr(dot + 1))) + " ";
  }
  text.back() = ',';
  return cat(text, " seed ", json_text(config["run"]["seed"]));
}

// Each setting is one that a configuration takes, and no two are the same training.
void check_points(const Sweep& sweep, const std::vector<SweepPoint>& points, std::optional<int64_t> epochs) {
  for (const SweepAxis& axis : sweep.axes)
    if (axis.key == "run.seed") fail_usage("--grid names run.seed; say with --seeds how many seeds each setting has");
  std::map<std::string, std::string> settings;  // by the identity of the job
  for (const SweepPoint& point : points) {
    const std::string text = point_text(sweep.axes, point);
    const auto [other, is_new] = settings.emplace(job_id(job_settings(sweep, point, sweep.seeds - 1, epochs)), text);
    if (!is_new) fail_usage(printable(text), " is the same training as ", printable(other->second));
  }
}

}  // namespace

Json trial_config(const Sweep& sweep, const SweepPoint& point, int64_t trial, std::optional<int64_t> epochs) {
  const std::vector<Section> sections = config_sections();
  std::vector<std::string> overrides;
  for (size_t a = 0; a < sweep.axes.size(); ++a) overrides.push_back(sweep.axes[a].key + "=" + point[a]);
  if (epochs) overrides.push_back(cat("train.epochs=", *epochs));
  Json config = resolve(overridden(sweep.config, overrides, sections), sections);
  Json& seed = config["run"]["seed"];
  if (seed.get<int64_t>() > INT64_MAX - trial) fail_usage("--seeds goes beyond the largest run.seed");
  seed = seed.get<int64_t>() + trial;
  return config;
}

JobList sweep_jobs(const Sweep& sweep, const std::vector<SweepPoint>& points, std::optional<int64_t> epochs) {
  JobList list;
  list.name = "sweep " + sweep.name;
  const auto seeds = static_cast<size_t>(sweep.seeds);
  check_points(sweep, points, epochs);
  list.settings.append(points.size() * seeds, [sweep, points, epochs, seeds](size_t i) {
    return job_settings(sweep, points[i / seeds], static_cast<int64_t>(i % seeds), epochs);
  });
  list.run = [](const Json& settings, const std::string& folder) { return train_trial(settings.at("config"), folder); };
  list.describe = [axes = sweep.axes](const Json& settings) { return training_text(axes, settings.at("config")); };
  list.expected_seconds = [](const Json& settings) { return settings["config"]["train"]["epochs"].get<double>(); };
  list.expects_ratios = true;
  return list;
}

std::vector<SettingScores> sweep_scores(const Sweep& sweep, const std::vector<SweepPoint>& points,
                                        const JobStore& store, std::optional<int64_t> epochs) {
  std::vector<SettingScores> scores;
  for (const SweepPoint& point : points) {
    SettingScores& setting = scores.emplace_back(SettingScores{point, {}});
    for (int64_t trial = 0; trial < sweep.seeds; ++trial) {
      const Json settings = job_settings(sweep, point, trial, epochs);
      const std::optional<DoneJob> job = store.read(settings);
      if (!job) continue;
      const auto count = [&](const char* key) { return static_cast<int64_t>(number(job->result, key).value_or(0)); };
      setting.trials.push_back({.seed = settings["config"]["run"]["seed"],
                                .validation = number(job->result, "validation"),
                                .test = number(job->result, "test"),
                                .validation_images = count("validation_images"),
                                .test_images = count("test_images"),
                                .seconds = job->seconds,
                                .run = "jobs/" + job_id(settings) + "/" + kRun});
    }
  }
  return scores;
}

}  // namespace sparsight
