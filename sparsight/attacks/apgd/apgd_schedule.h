// When AutoPGD checks its step sizes (Croce and Hein 2020, section 3.2, in the integer form of the authors' code).
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight {

// The number of iterations up to the first check is 0.22 N; each further interval is 0.03 N shorter, but at least 0.06
// N. All are rounded down and at least 1.
class ApgdSchedule {
 public:
  explicit ApgdSchedule(int64_t iterations);
  // Intervals of 0.04 N, rounded alike, as within the l1 ball (Croce and Hein 2021).
  static ApgdSchedule even(int64_t iterations);

  // Counts an iteration. Returns how many iterations the interval had that ends with it, or 0 within an interval.
  int64_t count();

 private:
  int64_t interval_, shortest_, decrement_, counted_ = 0;
};

// The iterations, from 1 on, after which there is a check.
std::vector<int64_t> apgd_checkpoints(int64_t iterations);

}  // namespace sparsight
