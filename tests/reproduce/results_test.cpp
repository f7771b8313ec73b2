#include "sparsight/reproduce/results.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reproduce/toy_figure.h"
#include "tests/support/errors.h"

namespace sparsight::results_test {

using testing::error_text;
using testing::toy_figure;

Json y(double value) { return {{"y", value}}; }

TEST(Reaches, P61_InterpolatesBetweenMeasuredPoints) {
  const std::vector<std::pair<double, double>> curve = {{100, 80}, {300, 90}, {500, 94}, {1000, 96}};
  EXPECT_DOUBLE_EQ(*reaches(curve, 85), 200);      // half of the way from 100 to 300
  EXPECT_DOUBLE_EQ(*reaches(curve, 95), 750);      // half of the way from 500 to 1000
  EXPECT_DOUBLE_EQ(*reaches(curve, 94), 500);      // at a point
  EXPECT_DOUBLE_EQ(*reaches(curve, 70), 100);      // above from the first point on
  EXPECT_FALSE(reaches(curve, 96.1).has_value());  // never
  EXPECT_FALSE(reaches({}, 1).has_value());
}

TEST(Reaches, P61_TheFirstTimeCountsAndPointsMayComeInAnyOrder) {
  // Falls below again after 2: the level 5 is first met at 1 + 5/8.
  EXPECT_DOUBLE_EQ(*reaches({{3, 4}, {1, 0}, {2, 8}, {4, 9}}, 5), 1.625);
}

// Figure 4 of the pMoE paper: the CNN's 95.2 at 1000 samples is reached by separate training between 500 (94.8) and 700
// (95.7): at 500 + 200 * 0.4 / 0.9 = 588.9, the dotted guide near 600.
TEST(Reaches, P61_TheGuideOfFigure4) {
  const std::vector<std::pair<double, double>> separate = {{100, 82.4}, {300, 92.3}, {500, 94.8},
                                                           {700, 95.7}, {900, 96.5}, {1000, 96.8}};
  EXPECT_NEAR(*reaches(separate, 95.2), 588.9, 0.05);
}

TEST(ResultTable, MeansAndDeviationsOverSeeds) {
  Figure figure = toy_figure({"", 3, 0});
  const std::vector<Json> jobs = figure.jobs({});
  std::vector<Json> results(jobs.size());
  results[0] = y(1), results[1] = y(2),
  results[2] = y(6);  // ours at 1: mean 3, squares 4 + 1 + 9, deviation sqrt(14/3)
  results[3] = y(5);  // ours at 2: one trial of three
  results[6] = y(NAN), results[7] = {{"y", nullptr}}, results[8] = y(7);
  const ResultTable table = make_table(figure, jobs, results, true);
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.seeds, (std::vector<int64_t>{0, 1, 2}));
  const Json one = {{"x", 1}, {"model", "ours"}};  // the order does not matter
  EXPECT_DOUBLE_EQ(*table.mean(one, "y"), 3);
  EXPECT_DOUBLE_EQ(*table.deviation(one, "y"), std::sqrt(14.0 / 3));
  EXPECT_DOUBLE_EQ(*table.paper(one, "y"), 10);
  EXPECT_DOUBLE_EQ(*table.mean({{"model", "ours"}, {"x", 2.0}}, "y"), 5);
  EXPECT_FALSE(table.deviation({{"model", "ours"}, {"x", 2}}, "y").has_value()) << "one trial";
  EXPECT_EQ(table.rows[2].trials.size(), 3u);
  EXPECT_EQ(table.rows[2].trials[2].seed, 2);
  EXPECT_EQ(table.rows[2].trials[2].values, (std::vector<std::optional<double>>{7.0}));
  EXPECT_DOUBLE_EQ(*table.rows[0].paper_deviation[0], 0.5);
  EXPECT_EQ(table.rows[2].measured[0], 1);
  EXPECT_DOUBLE_EQ(*table.mean({{"model", "ours"}, {"x", 4}}, "y"), 7);
  EXPECT_DOUBLE_EQ(*table.paper({{"model", "ours"}, {"x", 4}}, "y"), 42);
  EXPECT_TRUE(table.rows[3].trials.empty());
  EXPECT_FALSE(table.mean({{"model", "theirs"}, {"x", 1}}, "y").has_value());
  EXPECT_FALSE(table.mean({{"model", "nobody"}, {"x", 1}}, "y").has_value());
  EXPECT_FALSE(table.mean({{"x", 1}}, "y").has_value()) << "an axis is missing";
  EXPECT_FALSE(table.mean(one, "z").has_value());
  EXPECT_EQ(table.axis_values("x"), (std::vector<Json>{1, 2, 4}));
}

TEST(ResultTable, NumbersOfSyntheticDataAreNotComparedWithThePaper) {
  const Figure figure = toy_figure();
  const std::vector<Json> jobs = figure.jobs({});
  const ResultTable table = make_table(figure, jobs, std::vector<Json>(jobs.size()), false);
  EXPECT_FALSE(table.paper({{"model", "ours"}, {"x", 1}}, "y").has_value());
}

TEST(Scale, Names) {
  EXPECT_EQ(scale_name(find_scale("paper")), "paper");
  EXPECT_EQ(error_text<UsageError>([] { find_scale("papr"); }),
            "unknown scale \"papr\"; did you mean \"paper\"? (known: smoke, small, paper)");
}

}  // namespace sparsight::results_test
