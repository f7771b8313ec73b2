// One-factor-at-a-time ablations: a model with one setting changed at a time, trained on the same splits with the same
// seeds, one row per setting. Settings that amount to the same configuration share their runs.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/ablations.h"
#include "sparsight/dg/dg_run.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct DgAblation {
  DgRun run;  // the baseline; its placement is that of last_two_blocks() unless run.overrides say otherwise
  std::vector<Ablation> factors = gmoe_ablations();
  int64_t trials = 3;                   // seeds first_trial, first_trial + 1, ...
  std::vector<int64_t> test_envs = {};  // each alone; {}: every environment
  int64_t first_trial = 0;
};

struct AblationRow {
  std::string factor, setting;         // "baseline" and "" for that of `run` itself
  std::vector<std::string> variation;  // DgRun::variation; {} where it is the baseline
  DgCost cost = {};
};

// The baseline first. Raises UsageError, naming the setting, where a model cannot be built.
std::vector<AblationRow> ablation_rows(const DgAblation& ablation);

// "router: linear", as in the table.
std::string row_label(const AblationRow& row);
// Those of a row: each trial in each test environment.
std::vector<DgRun> ablation_runs(const DgAblation& ablation, const AblationRow& row);

// A job for each different configuration, trial and test environment.
JobList ablation_jobs(const DgAblation& ablation, const std::vector<AblationRow>& rows);

// What has been run so far, by training-domain validation: accuracies by test environment and their average, its
// difference from the baseline over paired trials with a 95 % interval, and the costs. A row without runs is open.
DgTable ablation_table(const DgAblation& ablation, const std::vector<AblationRow>& rows, const JobStore& store);

}  // namespace sparsight
