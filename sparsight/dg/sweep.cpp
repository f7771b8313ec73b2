#include "sparsight/dg/sweep.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/named_once.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/dg/data_identity.h"
#include "sparsight/report/run/run_metrics.h"

namespace sparsight {
namespace {

// Data of one's own are what they hold, wherever the folder is and however its path is written.
Json to_json(const DgRun& run) {
  Json json = dg_arguments(run);
  json["root"] = "";
  json["model"] = run.model;
  json["eval_every"] = run.eval_every;
  json["image_size"] = run.image_size;
  json["overrides"] = run.overrides;
  if (!run.variation.empty()) json["variation"] = run.variation;
  if (!run.root.empty()) json["data"] = data_identity(run);
  return json;
}

DgRun run_from(const Json& json, const std::string& root) {
  DgRun run;
  run.set = json.at("dataset"), run.root = root, run.algorithm = json.at("algorithm");
  run.model = json.at("model");
  run.test_envs = json.at("test_envs").get<std::vector<int64_t>>();
  run.trial_seed = json.at("trial_seed"), run.hparams_seed = json.at("hparams_seed");
  run.single_source = json.value("single_source", false);
  run.steps = json.at("steps"), run.eval_every = json.at("eval_every"), run.image_size = json.at("image_size");
  run.overrides = json.at("overrides").get<std::vector<std::string>>();
  run.variation = json.value("variation", std::vector<std::string>());
  return run;
}

// A run that is done is not trained again for damaged results, which are made from its log; but for a damaged log it
// is.
void forget_if_log_is_damaged(const std::string& run_folder) {
  if (!std::filesystem::exists(run_folder + "/done")) return;
  const std::string damage = read_run_metrics(run_folder + "/metrics.jsonl").damage;
  if (damage.empty()) return;
  log_warning(printable(run_folder), ": ", damage, ": the job trains anew");
  std::filesystem::remove_all(run_folder);
}

Json train_job(const DgRun& run, const std::string& folder) {
  forget_if_log_is_damaged(folder + "/run");
  const std::vector<Json> lines = train_dg(run, folder + "/run");
  return {{"evaluations", lines.size()}, {"last", lines.back()}};
}

constexpr const char* kJobResults = "/run/results.jsonl";  // in the folder of a job

// What is wrong with the results of a finished job. A run whose folder somebody removed is not trained again for that.
std::string find_damage(const std::string& folder) {
  const std::string file = folder + kJobResults;
  if (!std::filesystem::exists(file)) return "";
  try {
    read_dg_result(file);
  } catch (const Error& error) {
    return cat("the results of a job are damaged (", error.what(), ")");
  }
  return "";
}

// "erm (gmoe) on pacs, test environments 0 and 2, trial 1, hyper-parameter seed 0"
std::string job_text(const Json& settings) {
  const DgRun run = run_from(settings, "");
  std::vector<std::string> tested;
  for (const int64_t environment : run.test_envs) tested.push_back(std::to_string(environment));
  return cat(run.algorithm, " (", dg_model(run).name, ") on ", run.set, ", test environment",
             tested.size() == 1 ? " " : "s ", join(tested, " and "), ", trial ", run.trial_seed,
             ", hyper-parameter seed ", run.hparams_seed, run.variation.empty() ? "" : ", " + join(run.variation, " "));
}

// The runs of one dataset.
void add_runs(DgRunList& runs, const DgSweep& sweep) {
  constexpr double kMaxRuns = 1e15;
  const int64_t environments = environments_of_set(sweep.run);
  const TestSets sets = sweep.single_source ? single_source_sets(environments) : test_sets(environments, sweep.pairs);
  if (static_cast<double>(sweep.trials) * static_cast<double>(sweep.hparams) * static_cast<double>(sets.size()) >
      kMaxRuns)
    fail_usage("the sweep has more than 10^15 runs; use fewer trials or hyper-parameter seeds");
  const auto hparams = static_cast<size_t>(sweep.hparams), count = static_cast<size_t>(sweep.trials) * hparams;
  const std::vector<std::string> models = sweep.models.empty() ? std::vector{sweep.run.model} : sweep.models;
  for (const std::string& model : models)
    for (const std::string& algorithm : sweep.algorithms) {
      DgRun common = sweep.run;
      common.model = model, common.algorithm = algorithm, common.single_source = sweep.single_source;
      runs.append(count * sets.size(), [common, sets, hparams, first = sweep.first_trial](size_t i) {
        DgRun run = common;
        run.test_envs = sets[i % sets.size()];
        run.hparams_seed = static_cast<int64_t>(i / sets.size() % hparams);
        run.trial_seed = first + static_cast<int64_t>(i / sets.size() / hparams);
        return run;
      });
    }
}

}  // namespace

TestSets test_sets(int64_t environments, bool pairs) {
  TestSets sets;
  const auto count = static_cast<size_t>(environments);
  if (count > 1) sets.append(count, [](size_t e) { return std::vector{static_cast<int64_t>(e)}; });
  // A block for each first environment: its pairs with all after it.
  for (size_t first = 0; pairs && count > 2 && first + 1 < count; ++first)
    sets.append(count - first - 1, [first](size_t i) {
      return std::vector{static_cast<int64_t>(first), static_cast<int64_t>(first + 1 + i)};
    });
  return sets;
}

TestSets single_source_sets(int64_t environments) {
  TestSets sets;
  if (environments > 1)
    sets.append(static_cast<size_t>(environments), [environments](size_t source) {
      std::vector<int64_t> others;
      for (int64_t e = 0; e < environments; ++e)
        if (e != static_cast<int64_t>(source)) others.push_back(e);
      return others;
    });
  return sets;
}

DgRunList sweep_runs(const DgSweep& sweep) {
  if (!sweep.sets.empty() && !sweep.run.root.empty())
    fail_usage("--data is the folder of one dataset; several are read from their usual folders below SPARSIGHT_DATA");
  check_named_once(sweep.algorithms, "algorithm");
  check_named_once(sweep.models, "model");
  std::vector<std::string> sets;
  for (const std::string& set : sweep.sets.empty() ? std::vector{sweep.run.set} : sweep.sets)
    sets.push_back(domain_set(set).name);
  check_named_once(sets, "dataset");
  DgRunList runs;
  for (const std::string& set : sets) {
    DgSweep of_set = sweep;
    of_set.run.set = set;
    add_runs(runs, of_set);
  }
  if (runs.empty()) fail_usage("the sweep has no runs; give it an algorithm, trials and hyper-parameter seeds");
  return runs;
}

std::string sets_text(const DgSweep& sweep) { return sweep.sets.empty() ? sweep.run.set : join(sweep.sets); }

JobList sweep_jobs(const DgSweep& sweep) { return jobs_of_runs("dg " + sets_text(sweep), sweep_runs(sweep)); }

std::string common_text(const DgRun& run) {
  std::vector<std::string> parts;
  if (!run.root.empty()) parts.push_back("data " + data_identity(run));
  if (run.image_size != DgRun().image_size) parts.push_back(cat("image size ", run.image_size));
  if (run.steps > 0) parts.push_back(cat(run.steps, " steps"));
  if (run.eval_every > 0) parts.push_back(cat("evaluations every ", run.eval_every));
  std::map<std::string, std::string> settings;  // a later override replaces an earlier one
  for (const std::string& setting : run.overrides) settings[setting.substr(0, setting.find('='))] = setting;
  for (const auto& [key, setting] : settings) parts.push_back(setting);
  return join(parts);
}

std::string results_of_job(const DgRun& run, const JobStore& store) {
  return store.job_folder(to_json(run)) + kJobResults;
}

DgResult train_in_store(const DgRun& run, const JobStore& store) {
  using Clock = std::chrono::steady_clock;
  const Json settings = to_json(run);
  forget_if_damaged(store, settings, find_damage);
  while (!store.is_done(settings)) {
    if (interrupted()) fail("interrupted");
    if (const std::optional<FileLock> lock = store.claim(settings)) {
      const auto begin = Clock::now();
      const Json result = train_job(run, store.job_folder(settings));
      store.finish(settings, {result, std::chrono::duration<double>(Clock::now() - begin).count()});
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  return read_dg_result(results_of_job(run, store));
}

JobList jobs_of_runs(const std::string& name, const DgRunList& runs) {
  JobList list;
  list.name = name;
  check_runs(runs);
  for (const auto& block : runs.blocks())
    list.settings.append(block.count, [at = block.at](size_t i) { return to_json(at(i)); });
  const std::string root = runs.empty() ? "" : runs.front().root;
  list.run = [root](const Json& settings, const std::string& folder) {
    return train_job(run_from(settings, root), folder);
  };
  list.damage = find_damage;
  list.expected_seconds = [](const Json& settings) { return settings.at("steps").get<double>(); };
  list.expects_ratios = true;
  list.describe = job_text;
  return list;
}

}  // namespace sparsight
