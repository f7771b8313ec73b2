// Sorting, selecting, permuting and combining, with values worked by hand.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/routing/rows.h"
#include "sparsight/kernels/routing/sort_by_expert.h"
#include "sparsight/kernels/routing/top_experts.h"
#include "tests/kernels/every_level.h"

namespace sparsight::routing_kernels_test {
namespace {

using Numbers = std::vector<int64_t>;

}  // namespace

TEST(SortByExpertKernel, KeepsTheOrderWithinAnExpert) {
  const Numbers expert{1, 0, 1, 2, 0};
  const bool kept[]{true, true, false, true, true};
  Numbers offsets(4, -1), order(4, -1), counts(3);
  cpu::expert_offsets(expert.data(), kept, 5, 3, offsets.data());
  EXPECT_EQ(offsets, (Numbers{0, 2, 3, 4}));
  cpu::order_by_expert(expert.data(), kept, 5, 3, offsets.data(), order.data());
  EXPECT_EQ(order, (Numbers{1, 4, 0, 3}));
  cpu::count_by_expert(expert.data(), 5, counts.data());
  EXPECT_EQ(counts, (Numbers{2, 2, 1}));
}

TEST(TopExpertsKernel, TakesTheFirstOfEqualScoresAndNanLast) {
  testing::at_every_level([](cpu::Threads& threads) {
    const std::vector<double> scores{1, 3, 3, std::numeric_limits<double>::quiet_NaN(), 2};
    for (int64_t k = 1; k <= 5; ++k) {
      Numbers chosen(static_cast<size_t>(k)), want{1, 2, 4, 0, 3};
      want.resize(static_cast<size_t>(k));
      cpu::top_experts(threads, scores.data(), 1, 5, k, chosen.data());
      EXPECT_EQ(chosen, want) << k;
    }
    constexpr int64_t kTokens = 5000;
    std::vector<float> many(3 * kTokens);
    for (size_t i = 0; i < kTokens; ++i) many[3 * i + i % 3] = 1;
    Numbers chosen(kTokens);
    cpu::top_experts(threads, many.data(), kTokens, 3, 1, chosen.data());
    for (int64_t i = 0; i < kTokens; ++i) ASSERT_EQ(chosen[static_cast<size_t>(i)], i % 3);
  });
}

// Tokens 0, 0, 1, 1 of the assignments; rows are the assignments 2, 0, 3.
TEST(RowsKernel, PermuteAndCombine) {
  testing::at_every_level([](cpu::Threads& threads) {
    const Numbers token{0, 0, 1, 1}, order{2, 0, 3};
    Numbers row_token(3), token_rows(3), token_offsets(3);
    cpu::number_rows(token.data(), 4, order.data(), 3, 2, row_token.data(), token_rows.data(), token_offsets.data());
    EXPECT_EQ(row_token, (Numbers{1, 0, 1}));
    EXPECT_EQ(token_rows, (Numbers{1, 0, 2}));
    EXPECT_EQ(token_offsets, (Numbers{0, 1, 3}));

    const cpu::RowNumbers map{2, 3, row_token.data(), token_rows.data(), token_offsets.data()};
    using Floats = std::vector<float>;
    const Floats values{1, 2, 3, 4}, rows{1, 1, 2, 2, 3, 3}, gather_weight{2, 1, 0.5f}, combine_weight{1, 10, 100};
    Floats gathered(6), combined(4), dots(3);
    cpu::gather_rows(threads, map, values.data(), gather_weight.data(), 2, gathered.data());
    EXPECT_EQ(gathered, (Floats{6, 8, 1, 2, 1.5f, 2}));
    cpu::gather_rows<float>(threads, map, values.data(), nullptr, 2, gathered.data());
    EXPECT_EQ(gathered, (Floats{3, 4, 1, 2, 3, 4}));
    cpu::scatter_add_rows(threads, map, rows.data(), combine_weight.data(), 2, combined.data());
    EXPECT_EQ(combined, (Floats{20, 20, 301, 301}));
    cpu::dot_rows(threads, map, rows.data(), values.data(), 2, dots.data());
    EXPECT_EQ(dots, (Floats{7, 6, 21}));
  });
}

}  // namespace sparsight::routing_kernels_test
