#include "bench/measure/rounds.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace sparsight::bench {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

RoundTimes time_rounds(const std::vector<Timed>& works, int64_t rounds, int loads) {
  RoundTimes times(works.size());
  std::vector<int> passes(works.size(), 1);
  std::vector<size_t> order(works.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::minstd_rand random(1);
  for (int64_t round = 0; round <= rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t next : order) {
      const double start = works[next].clock();
      for (int pass = 0; pass < passes[next]; ++pass)
        for (int load = 0; load < loads; ++load) works[next].run(load);
      const double time = (works[next].clock() - start) / passes[next] / loads;
      if (round > 0) times[next].push_back(time);
      passes[next] = static_cast<int>(std::clamp(4e-3 / loads / time, 0.0, 200.0)) + 1;
    }
  }
  return times;
}

}  // namespace sparsight::bench
