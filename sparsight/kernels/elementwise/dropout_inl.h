// Dropout: sampling masks of one bit per element, and applying them. Loops over arrays of constant length, which the
// compiler turns into the vectors of the level; V only separates the levels' instantiations.
#pragma once

#include <array>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {
namespace {

// philox() of core/random.h for several blocks at a time.
template <class V>
void random_bits(const RandomBits& p) {
  constexpr int kBlocks = 16;
  using Words = uint32_t[kBlocks];
  for (int64_t block = 0; block < p.blocks; block += kBlocks) {
    Words a, b, c, d;
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t counter = p.first_block + static_cast<uint64_t>(block + i);
      a[i] = static_cast<uint32_t>(counter), b[i] = static_cast<uint32_t>(counter >> 32);
      c[i] = static_cast<uint32_t>(p.counter_high), d[i] = static_cast<uint32_t>(p.counter_high >> 32);
    }
    auto k0 = static_cast<uint32_t>(p.key), k1 = static_cast<uint32_t>(p.key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85)
      for (int i = 0; i < kBlocks; ++i) {
        const uint64_t first = uint64_t{0xD2511F53} * a[i], second = uint64_t{0xCD9E8D57} * c[i];
        a[i] = static_cast<uint32_t>(second >> 32) ^ b[i] ^ k0, b[i] = static_cast<uint32_t>(second);
        c[i] = static_cast<uint32_t>(first >> 32) ^ d[i] ^ k1, d[i] = static_cast<uint32_t>(first);
      }
    Words bits;
    for (int i = 0; i < kBlocks; ++i)
      bits[i] = (a[i] < p.limit ? 1u : 0u) | (b[i] < p.limit ? 2u : 0u) | (c[i] < p.limit ? 4u : 0u) |
                (d[i] < p.limit ? 8u : 0u);
    const int64_t left = p.blocks - block;
    for (int i = 0; i < kBlocks && i < left; i += 2)
      p.bits[(block + i) / 2] = static_cast<uint8_t>(bits[i] | bits[i + 1] << 4);
  }
}

// Eight factors, 0 or 1, for each byte of bits.
constexpr auto kByteFactors = [] {
  std::array<std::array<float, 8>, 256> factors{};
  for (size_t byte = 0; byte < 256; ++byte)
    for (size_t i = 0; i < 8; ++i) factors[byte][i] = static_cast<float>(byte >> i & 1);
  return factors;
}();

template <class V>
void drop(const uint8_t* bits, float scale, float* x, int64_t count) {
  int64_t c = 0;
  for (; c + 8 <= count; c += 8) {
    const float* const factors = kByteFactors[bits[c / 8]].data();
    for (int i = 0; i < 8; ++i) x[c + i] *= scale * factors[i];
  }
  for (; c < count; ++c) x[c] *= scale * static_cast<float>(bits[c / 8] >> (c % 8) & 1);
}

}  // namespace
}  // namespace sparsight::cpu
