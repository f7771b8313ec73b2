// Shared by figures 6 and 7: joint training against one constant of the network, for several numbers of samples, and a
// CNN with 1000 samples for comparison.
#pragma once

#include <vector>

#include "sparsight/papers/pmoe/figures/digit_runs.h"

namespace sparsight::pmoe {

struct JointSweep {
  std::string axis;             // "experts" or "patches"
  std::vector<int64_t> values;  // of the axis
  std::vector<int64_t> samples;
  double power = 0.25;  // predicted trend: accuracy = A - c axis^power
};

// 5 trials each at scale paper. Each expert has 5 filters, whatever the number of experts; `patches` is 6 and `experts`
// 8 unless they are the axis. The CNN's rows have model "cnn" and experts 1 or patches 16.
std::vector<Json> joint_jobs(const JointSweep& sweep, const FigureRun& run);

// A row of the paper's results for joint training.
Json joint_row(const JointSweep& sweep, int64_t value, int64_t samples, double accuracy);

// The value of the axis with the best mean accuracy.
std::optional<int64_t> best_value(const ResultTable& table, const JointSweep& sweep, int64_t samples);

// Fits A - c axis^power to the means for axis values from `from` on; holds if c > 0.
Claim falls_slowly(const ResultTable& table, const JointSweep& sweep, int64_t from);

// Compares the best joint network at the sweep's largest number of samples with the CNN at 1000.
Claim above_the_cnn(const ResultTable& table, const JointSweep& sweep);

}  // namespace sparsight::pmoe
