// Whether each step of SGD lowers the expected loss: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts
// is Provably Sample-efficient for Convolutional Neural Networks", lemmas G.4, H.4 and I.4. The learning rate
// is a constant times that of the lemmas: eta = rate * gamma³ v² / (m l²) for separate training and the CNN (n for l),
// rate * gamma³ v² l³ / (m k²) for joint training, gamma = 1 / (p sqrt(delta)).
// Differs from the paper: the constant `rate` (with 1 a step is too small to see in fp32), and a fixed batch size
// instead of the lemmas' l⁴ / (gamma⁶ v⁴) (joint: k² / (gamma⁶ v⁴)).
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct DescentStep {
  double v_squared = 0;  // sum over classes of the squared mean of v (CNN: the larger one)
  double lr = 0;
  double drop = 0;  // decrease of the loss on `test` in this step
};

// Takes `steps` steps, each on `batch` new samples; v is measured on `test`. Joint training is first trained until
// assumption 4.4 holds.
std::vector<DescentStep> descent(const PatternRun& run, const PatternModel& distribution, const PatchSet& test,
                                 int64_t steps, int64_t batch, double rate, uint64_t seed);

}  // namespace sparsight::pmoe
