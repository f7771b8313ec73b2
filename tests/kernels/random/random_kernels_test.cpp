// Random numbers are functions of stream and position alone.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/random/dropout_bits.h"
#include "sparsight/kernels/random/fill.h"
#include "tests/kernels/every_level.h"

namespace sparsight::random_kernels_test {
namespace {

const RandomStream kStream(7, "kernels");

std::vector<float> normal(cpu::Threads& threads, int64_t count, uint64_t first) {
  std::vector<float> out(static_cast<size_t>(count));
  cpu::fill_normal<float>(threads, {out.data(), count, first}, kStream, 1, 2);
  return out;
}

}  // namespace

TEST(RandomFillKernel, AnElementDependsOnItsPositionAlone) {
  cpu::OwnThreads one(1), three(3);
  const std::vector<float> all = normal(one, 20000, 0);
  EXPECT_EQ(normal(three, 20000, 0), all);
  for (const uint64_t first : {1, 3, 4, 4097}) {
    const std::vector<float> part = normal(three, 5000, first);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
  double sum = 0, squares = 0;
  for (const float x : all) sum += x, squares += (x - 1.0) * (x - 1.0);
  EXPECT_NEAR(sum / 20000, 1, 4 * 2 / std::sqrt(20000.0));
  EXPECT_NEAR(squares / 20000, 4, 4 * 4 * std::sqrt(2.0 / 20000));
}

TEST(RandomFillKernel, UniformNumbersStayBelowTheirEnd) {
  cpu::OwnThreads threads(2);
  std::vector<double> out(20000);
  cpu::fill_uniform<double>(threads, {out.data(), 20000, 5}, kStream, -1, 3);
  const auto [least, greatest] = std::ranges::minmax(out);
  EXPECT_GE(least, -1);
  EXPECT_LT(least, -0.99);
  EXPECT_LT(greatest, 3);
  EXPECT_GT(greatest, 2.99);
}

// Rows 5 and 2 of a stream, of whole and of broken bytes: the bits are the kept elements of the mask of factors.
TEST(DropoutBitsKernel, AreTheKeptElementsOfTheMask) {
  testing::at_every_level([](cpu::Threads& threads) {
    for (const int64_t columns : {5, 16, 40}) {
      const std::vector<int64_t> number{5, 2};
      std::vector<uint8_t> bits(static_cast<size_t>(2 * ((columns + 7) / 8)), 0xff);
      cpu::sample_dropout_bits(threads, {2, columns, number.data(), 0.3, bits.data()}, kStream);
      for (size_t r = 0; r < 2; ++r) {
        std::vector<float> factors(static_cast<size_t>(columns));
        cpu::fill_keep_mask(threads, {factors.data(), columns, static_cast<uint64_t>(number[r] * columns)}, kStream,
                            0.3);
        const size_t bytes = bits.size() / 2;
        for (size_t c = 0; c < 8 * bytes; ++c) {
          const bool kept = (bits[r * bytes + c / 8] >> (c % 8) & 1) != 0;
          ASSERT_EQ(kept, c < factors.size() && factors[c] != 0) << columns << " columns, row " << r << ", " << c;
          if (kept) {
            EXPECT_FLOAT_EQ(factors[c], 1 / 0.3f);
          }
        }
      }
    }
  });
}

}  // namespace sparsight::random_kernels_test
