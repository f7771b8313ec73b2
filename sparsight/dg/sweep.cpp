#include "sparsight/dg/sweep.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/domainbed.h"

namespace sparsight {
namespace {

Json to_json(const DgRun& run) {
  Json json = dg_arguments(run);
  json["root"] = run.root;
  json["model"] = run.model;
  json["eval_every"] = run.eval_every;
  json["image_size"] = run.image_size;
  json["overrides"] = run.overrides;
  if (!run.variation.empty()) json["variation"] = run.variation;
  return json;
}

DgRun run_from(const Json& json) {
  DgRun run;
  run.set = json.at("dataset"), run.root = json.at("root"), run.algorithm = json.at("algorithm");
  run.model = json.at("model");
  run.test_envs = json.at("test_envs").get<std::vector<int64_t>>();
  run.trial_seed = json.at("trial_seed"), run.hparams_seed = json.at("hparams_seed");
  run.steps = json.at("steps"), run.eval_every = json.at("eval_every"), run.image_size = json.at("image_size");
  run.overrides = json.at("overrides").get<std::vector<std::string>>();
  run.variation = json.value("variation", std::vector<std::string>());
  return run;
}

// Those of one dataset.
void add_runs(std::vector<DgRun>& runs, const DgSweep& sweep) {
  const int64_t environments = environments_of_set(sweep.run);
  std::vector<std::vector<int64_t>> sets =
      sweep.single_source ? single_source_sets(environments) : test_sets(environments, sweep.pairs);
  std::erase_if(sets, [&](const auto& tested) { return std::ssize(tested) >= environments; });  // nothing trains
  const std::vector<std::string> models = sweep.models.empty() ? std::vector{sweep.run.model} : sweep.models;
  for (const std::string& model : models)
    for (const std::string& algorithm : sweep.algorithms)
      for (int64_t trial = 0; trial < sweep.trials; ++trial)
        for (int64_t hparams = 0; hparams < sweep.hparams; ++hparams)
          for (const std::vector<int64_t>& test_envs : sets) {
            DgRun run = sweep.run;
            run.model = model, run.algorithm = algorithm, run.test_envs = test_envs;
            run.trial_seed = trial, run.hparams_seed = hparams;
            runs.push_back(run);
          }
}

}  // namespace

std::vector<std::vector<int64_t>> test_sets(int64_t environments, bool pairs) {
  std::vector<std::vector<int64_t>> sets;
  for (int64_t e = 0; e < environments; ++e) sets.push_back({e});
  for (int64_t first = 0; pairs && first < environments; ++first)
    for (int64_t second = first + 1; second < environments; ++second) sets.push_back({first, second});
  return sets;
}

int64_t environments_of_set(const DgRun& run) {
  if (const int64_t known = domain_set(run.set).environments; known > 0) return known;
  DomainBedOptions options;
  options.set = run.set, options.root = run.root;
  return static_cast<int64_t>(domainbed_environments(options, 0)->info().domains.size());
}

std::vector<std::vector<int64_t>> single_source_sets(int64_t environments) {
  std::vector<std::vector<int64_t>> sets;
  for (int64_t source = 0; source < environments; ++source) {
    sets.emplace_back();
    for (int64_t e = 0; e < environments; ++e)
      if (e != source) sets.back().push_back(e);
  }
  return sets;
}

std::vector<DgRun> sweep_runs(const DgSweep& sweep) {
  if (!sweep.sets.empty() && !sweep.run.root.empty())
    fail_usage("--data is the folder of one dataset; several are read from their usual folders below SPARSIGHT_DATA");
  std::vector<DgRun> runs;
  for (const std::string& set : sweep.sets.empty() ? std::vector{sweep.run.set} : sweep.sets) {
    DgSweep of_set = sweep;
    of_set.run.set = domain_set(set).name;
    add_runs(runs, of_set);
  }
  if (runs.empty()) fail_usage("the sweep has no runs; give it an algorithm, trials and hyper-parameter seeds");
  return runs;
}

JobList sweep_jobs(const DgSweep& sweep) { return jobs_of_runs(cat("dg ", sweep.run.set), sweep_runs(sweep)); }

std::string results_of_job(const DgRun& run, const JobStore& store) {
  return store.job_folder(to_json(run)) + "/run/results.jsonl";
}

JobList jobs_of_runs(const std::string& name, const std::vector<DgRun>& runs) {
  JobList list;
  list.name = name;
  for (const DgRun& run : runs) list.settings.push_back(to_json(run));
  list.run = [](const Json& settings, const std::string& folder) {
    const std::vector<Json> lines = train_dg(run_from(settings), folder + "/run");
    return Json{{"evaluations", lines.size()}, {"last", lines.back()}};
  };
  list.expected_seconds = [](const Json& settings) { return settings.at("steps").get<double>(); };
  return list;
}

}  // namespace sparsight
