// What can be wrong with runs, before the first of them starts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sparsight/dg/dg_run.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {

// How many environments a data set has. Of "folder" it counts those in run.root.
int64_t environments_of_set(const DgRun& run);

// Raises UsageError where one of the runs has no configuration, tests an environment that there is not, or leaves its
// algorithm too few environments to train on (AlgorithmFacts::domains). Warns, once for each algorithm, where there is
// one and nothing to compare it with. Of each block it looks at the first trial with two hyper-parameter seeds: the
// default values and a random choice.
void check_runs(const DgRunList& runs);

// Checks one run. environments: how many its dataset has; facts: of its algorithm. Adds the algorithms of which it
// warns to `warned`.
void check_run(const DgRun& run, int64_t environments, const AlgorithmFacts& facts, std::set<std::string>& warned);

}  // namespace sparsight
