// What figures 6 and 7 share: joint training against one constant of the network, for several numbers of samples,
// beside one CNN with 1000 samples.
#pragma once

#include <vector>

#include "sparsight/papers/pmoe/figures/digit_runs.h"

namespace sparsight::pmoe {

struct JointSweep {
  std::string axis;             // "experts" or "patches"
  std::vector<int64_t> values;  // of it
  std::vector<int64_t> samples;
  double power = 0.25;  // the theory's guide: accuracy = A - c axis^power
};

// 5 trials of each at the scale of the paper. Experts have 5 filters each whatever their number; `patches` is 6 and
// `experts` 8 where they are not the axis. The CNN's rows have model "cnn", and experts 1 or patches 16.
std::vector<Json> joint_jobs(const JointSweep& sweep, const FigureRun& run);

// {axis, samples, accuracy} of the paper, of both models.
Json joint_row(const JointSweep& sweep, int64_t value, int64_t samples, double accuracy);

// The value of the axis with the best mean accuracy.
std::optional<int64_t> best_value(const ResultTable& table, const JointSweep& sweep, int64_t samples);

// From `from` on: A - c axis^power fitted to the means, and whether c > 0.
Claim falls_slowly(const ResultTable& table, const JointSweep& sweep, int64_t from);

// The best joint network with the most samples of the sweep against the CNN with 1000.
Claim above_the_cnn(const ResultTable& table, const JointSweep& sweep);

}  // namespace sparsight::pmoe
