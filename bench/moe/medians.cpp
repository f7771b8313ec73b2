#include "bench/moe/medians.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "bench/moe/limits.h"

namespace sparsight::bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<double> medians(std::vector<Timed> all, int64_t rounds) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::minstd_rand random(1);
  for (int64_t round = 0; round <= rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t next : order) {
      Timed& one = all[next];
      const int passes = round == 0 || one.times.empty() || one.times[0] > 2e-3
                             ? 1
                             : static_cast<int>(std::min(200.0, 4e-3 / one.times[0] / kLoads)) + 1;
      const double start = seconds_now();
      for (int pass = 0; pass < passes; ++pass)
        for (int load = 0; load < kLoads; ++load) one.run(load);
      const double time = (seconds_now() - start) / passes / kLoads;
      if (round > 0) one.times.push_back(time);
    }
  }
  std::vector<double> out;
  for (const Timed& one : all) out.push_back(median(one.times));
  return out;
}

}  // namespace sparsight::bench
