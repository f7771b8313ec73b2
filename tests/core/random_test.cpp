#include "sparsight/core/random.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace sparsight::random_test {

// Known-answer vectors of Random123's philox4x32-10 (kat_vectors): zero, all ones, digits of pi.
TEST(Philox, MatchesTheKnownAnswersOfRandom123) {
  const std::array<uint32_t, 4> zero{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox(0, 0, 0), zero);
  const std::array<uint32_t, 4> ones{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), ones);
  const std::array<uint32_t, 4> pi{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull), pi);
}

TEST(RandomStream, IsAPureFunctionOfSeedPurposeAndStep) {
  RandomStream a(7, "noise", 3), b(7, "noise", 3), other(7, "noise", 4), purpose(7, "dropout", 3);
  const uint32_t first = a.bits();
  EXPECT_EQ(first, b.bits());
  EXPECT_EQ(first, b.bits_at(0));
  EXPECT_NE(first, other.bits());
  EXPECT_NE(first, purpose.bits());
}

TEST(RandomStream, NormalHasMeanZeroAndVarianceOne) {
  RandomStream stream(1, "test");
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));  // 4 standard errors
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2.0 / n));
}

TEST(RandomStream, BelowCoversItsRangeEvenly) {
  RandomStream stream(2, "test");
  std::array<int, 5> counts{};
  for (int i = 0; i < 50000; ++i) ++counts[stream.below(5)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 4 * std::sqrt(50000 * 0.2 * 0.8));
}

}  // namespace sparsight::random_test
