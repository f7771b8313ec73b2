// A sweep of DomainBed: every algorithm with every set of test environments, hyper-parameter seed and trial, as jobs.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/lazy_list.h"
#include "sparsight/dg/check_runs.h"
#include "sparsight/dg/dg_run.h"
#include "sparsight/dg/results/results.h"
#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct DgSweep {
  DgRun run;  // what all have in common
  std::vector<std::string> algorithms = {"erm"};
  int64_t trials = 3, hparams = 20;      // hyper-parameter seeds 0 .. n-1
  bool pairs = true;                     // pairs of test environments too, for leave-one-domain-out
  std::vector<std::string> models = {};  // every algorithm with each of these; {}: run.model
  std::vector<std::string> sets = {};    // all of it on each of these, in their usual folders; {}: run.set
  bool single_source = false;            // all environments but one are tested, instead of one or two
  int64_t first_trial = 0;               // trials have the seeds first_trial, first_trial + 1, ...
};

// Sets of test environments that leave one to train on.
using TestSets = LazyList<std::vector<int64_t>>;

// Each environment alone, then each pair: of E above 2, E (E + 1) / 2 sets.
TestSets test_sets(int64_t environments, bool pairs);

// All but each environment: E sets.
TestSets single_source_sets(int64_t environments);

// Their number costs nothing. Raises UsageError for an algorithm, model or dataset that is named twice.
DgRunList sweep_runs(const DgSweep& sweep);

// "pacs, vlcs"
std::string sets_text(const DgSweep& sweep);
// What all runs of a sweep have in common besides its datasets, for the identity of its folder: "data 6f1c.., 300
// steps, optimizer.lr=0.001", data by their fingerprint; "" if everything is as published.
std::string common_text(const DgRun& run);

// The runs as jobs; each trains in its own folder and leaves results.jsonl there. Raises UsageError as check_runs().
JobList sweep_jobs(const DgSweep& sweep);
// runs: all have the same `root`.
JobList jobs_of_runs(const std::string& name, const DgRunList& runs);
// Where the job of a run leaves it.
std::string results_of_job(const DgRun& run, const JobStore& store);
// The result of a run, which is trained there if no process has done so; waits for one that does. Raises Error where
// the training fails, and on an interrupt, after which the same call goes on.
DgResult train_in_store(const DgRun& run, const JobStore& store);

}  // namespace sparsight
