// The random numbers of numpy.random.RandomState, bit for bit: those that DomainBed's splits and hyper-parameters
// follow from. They belong to that protocol alone; everything else samples from core/random.h. The generator is MT19937
// (Matsumoto and Nishimura 1998).
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace sparsight {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : engine_(seed) {}  // RandomState(seed)

  uint32_t bits() { return static_cast<uint32_t>(engine_()); }
  double uniform();  // random_sample(): [0, 1), 53 bits
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n);  // randint(n), and the index that choice() takes: 0 .. n-1. 1 <= n <= 2^32
  std::vector<int64_t> permutation(int64_t n);  // shuffle(list(range(n)))

 private:
  std::mt19937 engine_;
};

}  // namespace sparsight
