#include "sparsight/sweep/axes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::sweep_axes_test {
namespace {

std::string complaint(const std::string& text) {
  return testing::error_text<UsageError>([&] { parse_axis(text); });
}

}  // namespace

TEST(SweepAxes, ValuesAreSplitAtCommasOutsideLists) {
  const SweepAxis axis = parse_axis("moe.blocks=[1,2],[-1]");
  EXPECT_EQ(axis.key, "moe.blocks");
  EXPECT_EQ(axis.values, (std::vector<std::string>{"[1,2]", "[-1]"}));
  EXPECT_FALSE(axis.range);
}

TEST(SweepAxes, SayWhatIsWrong) {
  for (const char* text : {"", "lr=1", "optimizer.lr", "optimizer.=1", ".lr=1", "optimizer.lr="})
    EXPECT_NE(complaint(text).find("--grid takes SECTION.KEY=VALUE"), std::string::npos) << text;
  EXPECT_NE(complaint("a.b=1,2,1").find("the value 1 is there twice"), std::string::npos);
  EXPECT_NE(complaint("a.b=1,,2").find("a value is empty"), std::string::npos);
  EXPECT_NE(complaint("a.b=log(0,1)").find("a logarithm needs ends above 0"), std::string::npos);
  EXPECT_NE(complaint("a.b=uniform(2,1)").find("LOW below HIGH"), std::string::npos);
  EXPECT_NE(complaint("a.b=uniform(x,1)").find("the ends of a range are numbers"), std::string::npos);
  EXPECT_NE(complaint("a.b=integers(0,1.5)").find("whole numbers"), std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] {
              parse_axes({"a.b=1", "a.b=2"});
            }).find("names a.b twice"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([] { parse_axes({}); }).find("at least one --grid"), std::string::npos);
}

TEST(SweepAxes, AGridHasEveryCombinationAndTheLastAxisChangesFastest) {
  const std::vector<SweepAxis> axes = parse_axes({"a.x=1,2", "b.y=u,v,w"});
  EXPECT_EQ(grid_points(axes),
            (std::vector<SweepPoint>{{"1", "u"}, {"1", "v"}, {"1", "w"}, {"2", "u"}, {"2", "v"}, {"2", "w"}}));
  EXPECT_EQ(point_text(axes, {"2", "v"}), "a.x=2 b.y=v");
  EXPECT_NE(testing::error_text<UsageError>([] { grid_points(parse_axes({"a.x=log(1,2)"})); }).find("--random N"),
            std::string::npos);
  std::string many = "a.x=0";
  for (int i = 1; i < 101; ++i) many += "," + std::to_string(i);
  std::string also = many;
  also[0] = 'b';
  EXPECT_NE(testing::error_text<UsageError>([&] {
              grid_points(parse_axes({many, also}));
            }).find("more than 10000"),
            std::string::npos);
}

TEST(SweepAxes, RandomSettingsDifferAndMoreOfThemBeginWithTheSame) {
  const std::vector<SweepAxis> axes = parse_axes({"a.x=1,2,3,4,5", "b.y=log(1e-4,1e-1)", "c.z=integers(-2,2)"});
  const std::vector<SweepPoint> few = random_points(axes, 10, 3), more = random_points(axes, 200, 3);
  ASSERT_EQ(more.size(), 200u);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
  EXPECT_NE(random_points(axes, 10, 4), few);
  EXPECT_EQ(std::set<SweepPoint>(more.begin(), more.end()).size(), 200u);
  int64_t below = 0;
  std::set<std::string> integers;
  for (const SweepPoint& point : more) {
    const double y = std::stod(point[1]);
    EXPECT_GE(y, 1e-4);
    EXPECT_LE(y, 1e-1);
    below += y < std::sqrt(1e-4 * 1e-1);  // the median of the logarithms
    integers.insert(point[2]);
  }
  EXPECT_NEAR(static_cast<double>(below) / 200, 0.5, 0.15);
  EXPECT_EQ(integers, (std::set<std::string>{"-2", "-1", "0", "1", "2"}));
}

TEST(SweepAxes, AllCombinationsAreTakenWhereThereAreNoMore) {
  const std::vector<SweepAxis> axes = parse_axes({"a.x=1,2", "b.y=3,4"});
  EXPECT_EQ(random_points(axes, 4, 0), grid_points(axes));
  EXPECT_EQ(random_points(axes, 100, 0), grid_points(axes));
  EXPECT_EQ(random_points(axes, 3, 0).size(), 3u);
  EXPECT_NE(testing::error_text<UsageError>([] {
              random_points(parse_axes({"a.x=integers(1,3)"}), 4, 0);
            }).find("fewer than 4 different values"),
            std::string::npos);
}

// A number that TOML reads as a real one: "1" would be an integer.
TEST(SweepAxes, DrawnNumbersAreReal) {
  for (const SweepPoint& point : random_points(parse_axes({"a.x=uniform(0,100)"}), 50, 1))
    EXPECT_NE(point[0].find_first_of(".e"), std::string::npos) << point[0];
}

}  // namespace sparsight::sweep_axes_test
