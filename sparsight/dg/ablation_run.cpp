#include "sparsight/dg/ablation_run.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "sparsight/core/error.h"
#include "sparsight/core/named_once.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/dg/cost_facts.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/vit.h"
#include "sparsight/report/format.h"

#include <nlohmann/json.hpp>

namespace sparsight {
namespace {

ImageShape image_shape(const DgRun& run) {
  const DomainSet& set = domain_set(run.set);
  const int64_t side = set.small_side > 0 ? set.small_side : run.image_size;
  int64_t classes = set.classes;
  if (classes == 0) {
    DomainBedOptions options;
    options.set = run.set, options.root = run.root;
    classes = std::ssize(domainbed_environments(options, 0)->info().classes);
  }
  return {set.channels, side, side, classes};
}

bool sets(const std::vector<std::string>& settings, const std::string& key) {
  return std::ranges::any_of(settings, [&](const std::string& setting) { return setting.starts_with(key + "="); });
}

int64_t model_depth(const DgRun& run) {
  const Json config = dg_config(run);
  if (config.at("model").at("name") != "vit")
    fail_usage("the ablations are of a ViT with MoE layers, such as --model gmoe; this model is ",
               config.at("model").at("name").get<std::string>());
  Json settings = config.at("model");
  settings.erase("name");
  VitOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, settings, "model");
  return with_preset(options, image_shape(run)).depth;
}

// The baseline of a model that is not 12 blocks deep has its MoE layers in its own last two even blocks.
DgRun baseline_run(const DgAblation& ablation) {
  DgRun run = ablation.run;
  if (run.model.empty()) run.model = "gmoe";
  const int64_t depth = model_depth(run);
  if (!sets(run.overrides, "moe.blocks")) run.overrides.push_back(blocks_setting(last_two_blocks(depth)));
  return run;
}

std::vector<std::string> setting_variation(const AblationSetting& setting, int64_t depth) {
  std::vector<std::string> variation = setting.settings;
  if (setting.blocks) variation.push_back(blocks_setting(setting.blocks(depth)));
  return variation;
}

// The configuration without what differs between runs of the same setting.
std::string run_identity(DgRun run) {
  run.test_envs = {0}, run.trial_seed = 0;
  return dg_config(run).dump();
}

AblationRow costed(AblationRow row, const DgRun& run, const ImageShape& shape) {
  const Cost cost = total(model_cost(dg_config(run), shape));
  row.cost = {cost.parameters, cost.active_parameters, cost.multiply_adds};
  return row;
}

std::vector<int64_t> tested(const DgAblation& ablation) {
  check_named_once(ablation.test_envs, "test environment");
  if (!ablation.test_envs.empty()) return ablation.test_envs;
  std::vector<int64_t> all;
  for (int64_t e = 0; e < environments_of_set(ablation.run); ++e) all.push_back(e);
  return all;
}

// The titles of the environments that are tested, and of their average.
std::vector<std::string> column_titles(const DgAblation& ablation) {
  const DgRun& run = ablation.run;
  std::vector<std::string> names;
  if (domain_set(run.set).environments == 0) {
    DomainBedOptions options;
    options.set = run.set, options.root = run.root;
    names = domainbed_environments(options, 0)->info().domains;
  }
  const auto count = static_cast<size_t>(environments_of_set(run));
  const std::vector<std::string> all = environment_titles(run.set, names, count);
  std::vector<std::string> titles;
  for (const int64_t environment : tested(ablation)) titles.push_back(all.at(static_cast<size_t>(environment)));
  titles.emplace_back("Avg");
  return titles;
}

DgRunList row_runs(const DgAblation& ablation, const DgRun& baseline, const AblationRow& row) {
  DgRun common = baseline;
  common.variation = row.variation, common.hparams_seed = 0;
  const std::vector<int64_t> environments = tested(ablation);
  DgRunList runs;
  runs.append(static_cast<size_t>(ablation.trials) * environments.size(),
              [common, environments, first = ablation.first_trial](size_t i) {
                DgRun run = common;
                run.trial_seed = first + static_cast<int64_t>(i / environments.size());
                run.test_envs = {environments[i % environments.size()]};
                return run;
              });
  return runs;
}

// The difference of the average over environments, over the trials that have both.
TableFact difference_from(const std::map<int64_t, double>& baseline, const std::map<int64_t, double>& row) {
  std::vector<double> a, b;
  for (const auto& [trial, average] : row)
    if (const auto paired = baseline.find(trial); paired != baseline.end())
      a.push_back(average), b.push_back(paired->second);
  if (a.empty()) return {};
  if (a.size() == 1) return {signed_fixed(a[0] - b[0], 1), a[0] - b[0], {}};
  const PairedDifference difference = paired_difference(a, b);
  return {cat(signed_fixed(difference.mean, 1), " (", signed_fixed(difference.interval.low, 1), " to ",
              signed_fixed(difference.interval.high, 1), ")"),
          difference.mean, difference.standard_error};
}

}  // namespace

std::vector<AblationRow> ablation_rows(const DgAblation& ablation) {
  const DgRun baseline = baseline_run(ablation);
  const int64_t depth = model_depth(baseline);
  const ImageShape shape = image_shape(baseline);
  std::vector<AblationRow> rows{costed({"baseline", "", {}}, baseline, shape)};
  std::map<std::string, std::vector<std::string>> known{{run_identity(baseline), {}}};  // variations by configuration
  for (const Ablation& factor : ablation.factors)
    for (const AblationSetting& setting : factor.settings) {
      if (sets(setting.settings, "train.upcycle") && !sets(baseline.overrides, "train.init_from")) continue;
      DgRun run = baseline;
      run.variation = setting_variation(setting, depth);
      try {
        const auto& variation = known.try_emplace(run_identity(run), run.variation).first->second;
        rows.push_back(costed({factor.name, setting.name, variation}, run, shape));
      } catch (const UsageError& error) {
        fail_usage(factor.name, " ", setting.name, ": ", error.what(), "; choose other factors with --only");
      }
    }
  return rows;
}

std::string row_label(const AblationRow& row) {
  return row.setting.empty() ? row.factor : cat(row.factor, ": ", row.setting);
}

std::vector<DgRun> ablation_runs(const DgAblation& ablation, const AblationRow& row) {
  return row_runs(ablation, baseline_run(ablation), row);
}

JobList ablation_jobs(const DgAblation& ablation, const std::vector<AblationRow>& rows) {
  const DgRun baseline = baseline_run(ablation);
  DgRunList runs;
  std::vector<std::vector<std::string>> done;
  for (const AblationRow& row : rows) {
    if (std::ranges::find(done, row.variation) != done.end()) continue;
    done.push_back(row.variation);
    const DgRunList of_row = row_runs(ablation, baseline, row);
    for (const auto& block : of_row.blocks()) runs.append(block.count, block.at);
  }
  return jobs_of_runs(cat("dg ablate ", ablation.run.set), runs);
}

DgTable ablation_table(const DgAblation& ablation, const std::vector<AblationRow>& rows, const JobStore& store) {
  const DgRun baseline = baseline_run(ablation);
  DgTable table{SelectionRule::training_domains, comparable_name(ablation.run.set), {}, {}};
  table.columns = column_titles(ablation);
  table.fact_columns = {"Avg - baseline"};
  append_cost_columns(table);
  std::map<int64_t, double> of_baseline;
  for (const AblationRow& ablated : rows) {
    std::vector<DgResult> results;
    for (const DgRun& run : row_runs(ablation, baseline, ablated))
      if (const std::string file = results_of_job(run, store); std::filesystem::exists(file))
        results.push_back(read_dg_result(file));
    const TrialAccuracies trials = trial_accuracies(pointers_to(results), table.rule, tested(ablation));
    DgTable::Row row = table_row(row_label(ablated), trials, table.columns.size());
    const std::map<int64_t, double> averages = trial_averages(trials);
    if (ablated.setting.empty()) of_baseline = averages;
    const bool is_baseline = ablated.variation.empty();
    row.facts = {is_baseline ? TableFact{} : difference_from(of_baseline, averages)};
    append_cost(row, ablated.cost);
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace sparsight
