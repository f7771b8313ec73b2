// Shared by figures 6 and 7: joint training against one constant of the network, for several numbers of samples, and a
// CNN with 1000 samples for comparison.
#pragma once

#include <string>
#include <vector>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {

// The settings of such a figure: one of `experts` and `patches` is its axis, a list.
struct JointOptions : DigitOptions {
  std::string axis = "experts";
  std::vector<int64_t> values = {}, samples = {};  // of the axis; of training
  int64_t experts = 8, patches = 6;                // of these the axis is not used
  int64_t filters = 5, total_filters = 0;
  int64_t cnn_filters = 40, cnn_samples = 1000;
  double power = 0.25;  // predicted trend: accuracy = A - c axis^power
  void declare(OptionSet& set);
  // The CNN's value on the axis: one expert that takes all patches.
  int64_t cnn_value() const { return axis == "experts" ? 1 : 16; }
  // The axis value of the paper's other figures: 8 experts, 6 patches.
  int64_t usual() const { return axis == "experts" ? 8 : 6; }
};

// Rows of joint training, and those with model "cnn" and experts 1 or patches 16.
std::vector<Json> joint_jobs(const JointOptions& options);

// Rows of the paper's results for joint training, one list per number of samples, and the CNN with 1000 samples.
std::vector<Json> joint_paper(const JointOptions& paper, const std::vector<PaperCurve>& accuracy, double cnn);

// Fits A - c axis^power to the means for axis values from `from` on, at each number of samples: c is above 0.
Claim falls_slowly(const ResultTable& table, const JointOptions& options, int64_t from);

// The joint network of the usual size at the largest number of samples is above the CNN.
Claim above_the_cnn(const ResultTable& table, const JointOptions& options);

}  // namespace sparsight::pmoe
