#include "sparsight/core/random.h"

#include <cmath>

namespace sparsight {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                            static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint64_t hash_combine(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

uint32_t RandomStream::bits_at(uint64_t index) const { return philox(key_, step_, index / 4)[index % 4]; }

uint32_t RandomStream::bits() { return bits_at(next_++); }

double RandomStream::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;
  return static_cast<double>(high * 67108864 + low) * 0x1p-53;
}

double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

int64_t RandomStream::below(int64_t n) {
  const uint64_t range = static_cast<uint64_t>(n), limit = UINT64_MAX - UINT64_MAX % range;
  uint64_t value;
  do {
    value = uint64_t{bits()} << 32;
    value |= bits();
  } while (value >= limit);
  return static_cast<int64_t>(value % range);
}

double RandomStream::normal() {  // Box-Muller
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

}  // namespace sparsight
