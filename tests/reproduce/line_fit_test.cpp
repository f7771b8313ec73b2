#include "sparsight/reproduce/line_fit.h"

#include <gtest/gtest.h>

namespace sparsight::line_fit_test {

// Through (0, 1), (1, 2), (2, 6): means 1 and 3, sums of products 5 over 2: slope 2.5, offset 0.5. The squares about
// the mean are 14, of which 2.5 * 5 = 12.5 are explained.
TEST(LineFit, IsLeastSquares) {
  const LineFit fit = fit_line({{0, 1}, {1, 2}, {2, 6}});
  EXPECT_DOUBLE_EQ(fit.slope, 2.5);
  EXPECT_DOUBLE_EQ(fit.offset, 0.5);
  EXPECT_NEAR(fit.explained, 12.5 / 14, 1e-12);
}

TEST(LineFit, PointsOnALineAreExplained) {
  EXPECT_DOUBLE_EQ(fit_line({{1, 3}, {4, 9}}).explained, 1);
  EXPECT_DOUBLE_EQ(fit_line({{1, 3}, {4, 3}}).slope, 0);
}

TEST(LineFit, OneXValueGivesNoLine) { EXPECT_EQ(fit_line({{2, 3}, {2, 5}}).slope, 0); }

}  // namespace sparsight::line_fit_test
