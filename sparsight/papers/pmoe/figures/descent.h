// Whether each step of SGD lowers the expected loss: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts
// is Provably Sample-efficient for Convolutional Neural Networks", lemmas G.4, H.4 and I.4. The lemmas' rate with a
// constant: eta = rate * gamma³ v² / (m l²) for separate training and the CNN (n for l), gamma³ v² l³ / (m k²) for
// joint training, gamma = 1 / (p sqrt(delta)).
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct DescentStep {
  double v_squared = 0;  // sum over classes of the squared means of v (CNN: of the larger one)
  double lr = 0;
  double drop = 0;  // of the loss over `test` in this step
};

// `steps` steps, each on `batch` new samples; v over `test`. `rate` is the constant of the prescribed rate: with 1 a
// step is too small to see in fp32. Joint training takes its first steps before, until assumption 4.4 holds.
std::vector<DescentStep> descent(const PatternRun& run, const PatternModel& distribution, const PatchSet& test,
                                 int64_t steps, int64_t batch, double rate, uint64_t seed);

}  // namespace sparsight::pmoe
