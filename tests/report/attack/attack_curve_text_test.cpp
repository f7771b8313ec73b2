// Robust accuracy over epsilon as text, CSV and charts.
#include "sparsight/report/attack/attack_curve_text.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/report/attack/attack_curve_page.h"

namespace sparsight::attack_curve_text_test {
namespace {

Json share_with_interval(int64_t count, double low, double high) {
  return {{"count", count}, {"of", 10}, {"value", 0.1 * static_cast<double>(count)}, {"interval", {low, high}}};
}

Json point_at(const std::string& given, double epsilon, int64_t first, int64_t second) {
  const Json last = share_with_interval(second, 0.125, 0.5);
  return {{"epsilon", epsilon},
          {"given", given},
          {"clean_accuracy", share_with_interval(8, 0.5, 0.75)},
          {"robust_accuracy", last},
          {"success_rate", {{"value", 0.5}}},
          {"stages",
           {{{"name", "apgd-ce"},
             {"attack", "apgd"},
             {"robust_after", share_with_interval(first, 0.25, 0.625)},
             {"gained", 2}},
            {{"name", "square"}, {"attack", "square"}, {"robust_after", last}, {"gained", first - second}}}},
          {"routing",
           {{{"layer", "blocks.1.mlp"}, {"change", 0.25}, {"of_chance", 0.5}},
            {{"layer", "blocks.3.mlp"}, {"change", 0.5}, {"of_chance", nullptr}}}},
          {"warnings", {"look <here>"}}};
}

Json some_curve() {
  return {{"attack", {{"name", "autoattack"}}},
          {"threat", {{"norm", "linf"}, {"range", "0..1"}, {"given", "1/255,2/255 of pixels in 0..1"}}},
          {"points", {point_at("1/255", 1.0 / 255, 6, 5), point_at("2/255", 2.0 / 255, 4, 2)}},
          {"warnings", {"a curve"}},
          {"notes", {"a note"}}};
}

}  // namespace

TEST(AttackCurveText, HasARowForEachEpsilonAndAColumnForEachAttack) {
  const Rows rows = attack_curve_rows(some_curve());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"epsilon", "robust", "95 % CI", "apgd-ce", "square", "success rate",
                                               "routing changed", "of chance", "time"}));
  EXPECT_EQ(rows[1],
            (std::vector<std::string>{"0 (clean)", "80.00 %", "50.00 to 75.00", "-", "-", "-", "-", "-", "-"}));
  EXPECT_EQ(rows[3], (std::vector<std::string>{"2/255", "20.00 %", "12.50 to 50.00", "40.00 %", "20.00 %", "50.00 %",
                                               "37.50 %", "-", "0.0 s"}));
}

TEST(AttackCurveText, SaysWarningsOfTheCurveAndOfItsAttacks) {
  const std::string text = attack_curve_text(some_curve());
  for (const char* part : {"autoattack, linf, epsilon 1/255,2/255 of pixels in 0..1, not clipped\n",
                           "warning: a curve\n", "warning: epsilon 2/255: look <here>\n", "note: a note\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_NE(attack_curve_page(some_curve()).find("epsilon 2/255: look &lt;here&gt;"), std::string::npos);
}

TEST(AttackCurveText, TheCsvHasARowForEachEpsilonAndAttack) {
  const std::string csv = attack_curve_csv(some_curve());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_NE(csv.find("\n2/255,0.00784313725,square,2,10,0.2,0.125,0.5,2,,,,0.375,\n"), std::string::npos) << csv;
}

TEST(AttackCurveText, ChartsStartFromTheCleanImagesAndShowIntervals) {
  const std::vector<Chart> charts = attack_curve_charts(some_curve());
  ASSERT_EQ(charts.size(), 2u);
  const Json& rows = charts[0].spec["data"]["values"];
  ASSERT_EQ(rows.size(), 6u);  // two attacks at three epsilons
  EXPECT_EQ(rows[0]["step"], 0);
  EXPECT_EQ(rows[0]["value"], 0.8);
  EXPECT_EQ(rows[1]["low"], 0.25);
  EXPECT_EQ(charts[0].spec["encoding"]["x"]["title"], "epsilon, of pixels in 0..1");
  EXPECT_EQ(charts[1].spec["data"]["values"].size(), 4u);  // two layers
  EXPECT_FALSE(charts[1].spec["data"]["values"][0].contains("low"));
}

// Curves may come from anyone.
// From 0 on: linear up to the smallest epsilon, logarithmic above it.
TEST(AttackCurveText, TheAxisOfAWideRangeIsLogarithmic) {
  EXPECT_FALSE(attack_curve_charts(some_curve())[0].spec["encoding"]["x"]["scale"].contains("type"));
  Json wide = some_curve();
  wide["points"].push_back(point_at("16/255", 16.0 / 255, 1, 0));
  for (const Chart& chart : attack_curve_charts(wide)) {
    const Json& scale = chart.spec["encoding"]["x"]["scale"];
    EXPECT_EQ(scale["type"], "symlog");
    EXPECT_EQ(scale["constant"], 1.0 / 255);
  }
}

TEST(AttackCurveText, TakesAnything) {
  for (const char* text : {"{}", R"({"points": 3})", R"({"points": [3, {"stages": 4, "routing": [5]}]})",
                           R"({"points": [{"stages": [{"robust_after": {"interval": [1]}}]}], "warnings": [1]})"}) {
    const Json curve = Json::parse(text);
    EXPECT_FALSE(attack_curve_text(curve).empty());
    EXPECT_FALSE(attack_curve_csv(curve).empty());
    EXPECT_FALSE(attack_curve_page(curve).empty());
  }
}

}  // namespace sparsight::attack_curve_text_test
