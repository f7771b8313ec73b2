// Randomness with names. A stream is (seed, purpose, step): every sample is a pure function of these and of the
// position in the stream, so adding a stream disturbs no other, nothing has to be saved to resume a run, and results do
// not depend on threads. The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sparsight {

// One block of four 32-bit words for a 64-bit key and a 128-bit counter (high, low).
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low);

// Mixes 64-bit words into one key (splitmix64 chaining).
uint64_t hash_combine(uint64_t a, uint64_t b);
uint64_t hash_name(std::string_view name);

class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view purpose, uint64_t step = 0)
      : key_(hash_combine(seed, hash_name(purpose))), step_(step) {}

  // Sequential samples.
  uint32_t bits();
  double uniform();                         // [0, 1)
  double uniform(double low, double high);  // [low, high)
  int64_t below(int64_t n);                 // 0 .. n-1, n >= 1, without modulo bias
  double normal();                          // N(0, 1)

  // The sample at a position, for parallel filling; independent of the samples before.
  uint32_t bits_at(uint64_t index) const;
  // The words bits_at(4 * block) .. bits_at(4 * block + 3), at the cost of one.
  std::array<uint32_t, 4> block_at(uint64_t block) const { return philox(key_, step_, block); }

  // The key and the high half of the counter of its blocks, for generators in vectors.
  uint64_t key() const { return key_; }
  uint64_t step() const { return step_; }

  // A seed for a foreign generator (at::Generator), derived from this stream.
  uint64_t seed() const { return hash_combine(key_, step_); }

 private:
  uint64_t key_, step_, next_ = 0;
};

// The randomness of one training or evaluation step, passed explicitly: stream("blocks.3.moe.noise") is the same
// regardless of the caller and of when it is called.
struct StepRandom {
  uint64_t seed = 0;
  uint64_t step = 0;
  RandomStream stream(std::string_view purpose) const { return RandomStream(seed, purpose, step); }
};

}  // namespace sparsight
