// Times several implementations of the same work in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sparsight::bench {

constexpr int kLoads = 8;  // different batches of tokens in turn, so that small batches together touch all experts

// Something to time; `load` is the index of the batch of tokens.
struct Timed {
  std::function<void(int load)> run;
  std::vector<double> times;
};

// Runs all in turn, round after round, each often enough to last some milliseconds. The order changes every round,
// since the previous run decides what is in the caches. Returns the median of each in seconds per load. The first round
// is not counted.
std::vector<double> medians(std::vector<Timed> all, int64_t rounds);

}  // namespace sparsight::bench
