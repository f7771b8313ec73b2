// The sample complexity of a task (Li et al. 2023, definition before theorem 1), measured: the smallest number of
// samples n with which training reaches an error of at most epsilon in a share of at least 1 - delta of all trials.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sparsight::gmoe {

struct SampleSearch {
  int64_t trials = 20;
  double delta = 0.1;
  int64_t first = 1, largest = int64_t{1} << 20;  // numbers of samples
};

struct SuccessShare {
  int64_t samples;
  double share;  // of the trials, 0 to 1
};

struct SampleComplexity {
  std::optional<int64_t> samples;   // null if even the largest number fails
  std::vector<SuccessShare> curve;  // everything that was tried, ascending
};

// succeeds(n, trial): whether training on n samples reached epsilon. Doubles n until enough trials succeed, then
// bisects, assuming that more samples do not hurt.
SampleComplexity sample_complexity(const SampleSearch& search,
                                   const std::function<bool(int64_t samples, int64_t trial)>& succeeds);

// Least squares without intercept for y = <x, w>, x ~ N(0, I) of `width` dimensions, |w| = 1, with noise N(0, noise²):
// |w_n - w|, the root mean square error on new noiseless samples. A function of the arguments.
double linear_target_error(int64_t width, double noise, int64_t samples, uint64_t seed);

}  // namespace sparsight::gmoe
