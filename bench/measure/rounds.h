// Times several implementations of the same work in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sparsight::bench {

constexpr int kLoads = 8;  // different batches of tokens in turn, so that small batches together touch all experts

double seconds_now();

// Something to time; `load` is the index of the batch of tokens.
using Work = std::function<void(int load)>;
struct Timed {
  Work run;
  std::function<double()> clock = seconds_now;
};

// Seconds per load of each in each round: [works][rounds].
using RoundTimes = std::vector<std::vector<double>>;

// Runs all in turn, round after round, each often enough to last some milliseconds. The order changes every round,
// since the previous run decides what is in the caches. A first round, which warms up, is not counted. loads: runs of
// each in a round, with load 0 .. loads - 1; 1 for work that takes seconds.
RoundTimes time_rounds(const std::vector<Timed>& works, int64_t rounds, int loads = kLoads);

}  // namespace sparsight::bench
