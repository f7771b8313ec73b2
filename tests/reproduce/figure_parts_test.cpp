#include "sparsight/reproduce/figure_parts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sparsight::figure_parts_test {
namespace {

TEST(FigureParts, EveryScaleHasItsSize) {
  EXPECT_EQ(by_scale(Scale::smoke, 1, 2, 3), 1);
  EXPECT_EQ(by_scale(Scale::small, 1, 2, 3), 2);
  EXPECT_EQ(by_scale(Scale::paper, 1, 2, 3), 3);
}

TEST(FigureParts, ThePapersDeviationsAreKept) {
  EXPECT_EQ(paper_row({{"x", 1}}, "y", {2, 0.5}), Json({{"x", 1}, {"y", 2.0}, {"y_deviation", 0.5}}));
  EXPECT_EQ(paper_row({{"x", 1}}, "y", {2}), Json({{"x", 1}, {"y", 2.0}}));
}

TEST(FigureParts, NumbersAreShort) {
  EXPECT_EQ(shown_number(3.14159), "3.142");
  EXPECT_EQ(shown_number(1e-7, 2), "1e-07");
}

}  // namespace
}  // namespace sparsight::figure_parts_test
