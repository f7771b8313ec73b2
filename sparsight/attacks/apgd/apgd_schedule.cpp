#include "sparsight/attacks/apgd/apgd_schedule.h"

#include <algorithm>

namespace sparsight {

namespace {

int64_t percent_steps(int64_t percent, int64_t iterations) { return std::max<int64_t>(percent * iterations / 100, 1); }

}  // namespace

ApgdSchedule::ApgdSchedule(int64_t iterations)
    : interval_(percent_steps(22, iterations)),
      shortest_(percent_steps(6, iterations)),
      decrement_(percent_steps(3, iterations)) {}

ApgdSchedule ApgdSchedule::even(int64_t iterations) {
  ApgdSchedule schedule(iterations);
  schedule.interval_ = schedule.shortest_ = percent_steps(4, iterations);
  schedule.decrement_ = 0;
  return schedule;
}

int64_t ApgdSchedule::count() {
  if (++counted_ < interval_) return 0;
  const int64_t length = interval_;
  interval_ = std::max(interval_ - decrement_, shortest_);
  counted_ = 0;
  return length;
}

std::vector<int64_t> apgd_checkpoints(int64_t iterations) {
  ApgdSchedule schedule(iterations);
  std::vector<int64_t> checkpoints;
  for (int64_t i = 1; i <= iterations; ++i)
    if (schedule.count() > 0) checkpoints.push_back(i);
  return checkpoints;
}

}  // namespace sparsight
