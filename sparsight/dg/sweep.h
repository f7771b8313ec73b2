// A sweep of DomainBed: every algorithm with every set of test environments, hyper-parameter seed and trial, as jobs.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/dg_run.h"
#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct DgSweep {
  DgRun run;  // what all have in common
  std::vector<std::string> algorithms = {"erm"};
  int64_t trials = 3, hparams = 20;      // seeds 0 .. n-1
  bool pairs = true;                     // pairs of test environments too, for leave-one-domain-out
  std::vector<std::string> models = {};  // every algorithm with each of these; {}: run.model
};

// Each environment alone, then each pair: E (E + 1) / 2 sets.
std::vector<std::vector<int64_t>> test_sets(int64_t environments, bool pairs);

// How many environments a data set has. Of "folder" it counts those in run.root.
int64_t environments_of_set(const DgRun& run);

std::vector<DgRun> sweep_runs(const DgSweep& sweep);

// The runs as jobs; each trains in its own folder and leaves results.jsonl there.
JobList sweep_jobs(const DgSweep& sweep);

}  // namespace sparsight
