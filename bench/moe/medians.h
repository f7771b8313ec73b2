// Times several ways to do the same work, in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sparsight::bench {

constexpr int kLoads = 8;  // different sets of tokens, in turn, so that few tokens touch all experts

// Something to time; `load` is the number of the set of tokens.
struct Timed {
  std::function<void(int load)> run;
  std::vector<double> times;
};

// Runs all in turn, round after round, each often enough to last some milliseconds; in another order each round, since
// what ran before decides what lies in the caches. Returns the median of each in seconds for one load. The first round
// is not counted.
std::vector<double> medians(std::vector<Timed> all, int64_t rounds);

}  // namespace sparsight::bench
