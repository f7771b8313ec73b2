#include "sparsight/reproduce/log_slope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight::log_slope_test {

TEST(LogLogSlope, IsTheExponent) {
  EXPECT_NEAR(log_log_slope({{1, 5}, {2, 40}, {4, 320}}), 3, 1e-12);  // 5 x³
  EXPECT_NEAR(log_log_slope({{1, 4}, {100, 0.4}}), -0.5, 1e-12);
  // ln y = 0, 1, 0 at ln x = 0, 1, 2: a flat line.
  EXPECT_NEAR(log_log_slope({{1, 1}, {std::exp(1.), std::exp(1.)}, {std::exp(2.), 1}}), 0, 1e-12);
}

TEST(LogLogSlope, NeedsTwoPointsAndPositiveNumbers) {
  EXPECT_THROW(log_log_slope({{2, 1}, {2, 3}}), Error);
  EXPECT_THROW(log_log_slope({{1, 1}, {2, 0}}), Error);
  EXPECT_THROW(log_log_slope({}), Error);
}

}  // namespace sparsight::log_slope_test
