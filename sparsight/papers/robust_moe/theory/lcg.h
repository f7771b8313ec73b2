// The random numbers of the specification's experiments, so that any program can repeat them: the 32-bit linear
// congruential generator s <- 1664525 s + 1013904223, u = (s + 0.5) / 2^32, and normals by Box and Muller 1958. For
// everything else there is core/random.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sparsight::robust_moe {

class Lcg {
 public:
  explicit Lcg(uint32_t seed) : state_(seed) {}
  double uniform() {
    state_ = 1664525u * state_ + 1013904223u;
    return (state_ + 0.5) / 4294967296.0;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  double sign() { return uniform() > 0.5 ? 1 : -1; }

 private:
  uint32_t state_;
};

}  // namespace sparsight::robust_moe
