#include "sparsight/reproduce/figure_parts.h"

#include <gtest/gtest.h>

#include "tests/reproduce/curve_table.h"

namespace sparsight::figure_parts_test {
namespace {

TEST(FigureParts, EveryScaleHasItsSize) {
  EXPECT_EQ(by_scale(FigureRun{Scale::smoke}, 1, 2, 3), 1);
  EXPECT_EQ(by_scale(FigureRun{Scale::small}, 1, 2, 3), 2);
  EXPECT_EQ(by_scale(FigureRun{Scale::paper}, 1, 2, 3), 3);
}

TEST(FigureParts, SeedsMultiplyJobs) {
  const std::vector<Json> jobs = with_seeds({{{"x", 1}}, {{"x", 2}}}, 2);
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[1], Json({{"x", 1}, {"seed", 1}}));
  EXPECT_EQ(jobs[2], Json({{"x", 2}, {"seed", 0}}));
}

TEST(FigureParts, PointsAreThoseThatWereMeasured) {
  const ResultTable table = testing::curve_table({{"a", 10, 1.5}, {"b", 10, 2}, {"a", 30, std::nullopt}, {"a", 20, 3}});
  EXPECT_EQ(measured_points(table, "samples", "accuracy", {{"model", "a"}}),
            (std::vector<std::pair<double, double>>{{10, 1.5}, {20, 3}}));
  EXPECT_TRUE(measured_points(table, "samples", "accuracy", {{"model", "c"}}).empty());
}

TEST(FigureParts, ASmokeRunJudgesNothing) {
  const std::vector<Claim> claims = {{"it holds", "yes", true}};
  EXPECT_FALSE(judged(claims, FigureRun{Scale::smoke})[0].holds);
  EXPECT_EQ(judged(claims, FigureRun{Scale::small})[0].holds, true);
}

TEST(FigureParts, NumbersAreShort) {
  EXPECT_EQ(shown_number(3.14159), "3.142");
  EXPECT_EQ(shown_number(1e-7, 2), "1e-07");
}

}  // namespace
}  // namespace sparsight::figure_parts_test
