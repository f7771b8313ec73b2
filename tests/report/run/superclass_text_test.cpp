#include "sparsight/report/run/superclass_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::superclass_text_test {

TEST(SuperclassText, ATableOfSizesAndMembers) {
  EXPECT_EQ(superclass_rows({0, 1, 0}, {"animals", "vehicles"}, {"cat", "car", "dog"}),
            (Rows{{"super-class", "name", "classes", "members"},
                  {"0", "animals", "2", "cat, dog"},
                  {"1", "vehicles", "1", "car"}}));
  std::vector<std::string> classes;
  for (int k = 0; k < 12; ++k) classes.push_back(cat("c", k));
  EXPECT_EQ(superclass_rows(std::vector<int64_t>(12, 0), {"all"}, classes)[1][3],
            "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more");
  EXPECT_EQ(superclass_rows({0}, {"all"}, {})[1][3], "0");  // the number of a class without a name
}

TEST(SuperclassText, DamagedListsGiveNoTable) {
  EXPECT_EQ(superclass_rows({0, 2}, {"a", "b"}, {"x", "y"}).size(), 1u);
  EXPECT_EQ(superclass_rows({-1}, {"a"}, {"x"}).size(), 1u);
  EXPECT_EQ(superclass_rows({}, {}, {}).size(), 1u);
  EXPECT_EQ(router_measure_rows(Json()).size(), 1u);
  EXPECT_EQ(router_measure_rows(Json::parse(R"([{"layer": "a"}, 3])")).size(), 1u);
  EXPECT_EQ(touched_text(Json::parse(R"({"touched": {"parameters": -1, "parameters_max": 2, "bytes": 3}})")), "");
  EXPECT_EQ(touched_text(Json::parse(R"({"touched": {"parameters": 1e300, "parameters_max": 1e300, "bytes": 1}})")),
            "");
  EXPECT_EQ(touched_text(Json::parse(R"({"touched": []})")), "");
}

TEST(SuperclassText, TouchedWeightsSayTheMaximumWhereImagesDiffer) {
  const Json eval = {{"touched", {{"parameters", 6015208.0}, {"parameters_max", 6311080}, {"bytes", 24060832.0}}}};
  EXPECT_EQ(touched_text(eval),
            "weights touched per image: 6,015,208 parameters (24.06 MB in fp32), at most 6,311,080");
}

// Names are cut between characters: the é of two bytes would end at the 25th.
TEST(SuperclassText, ExpertsAreNamedAfterTheirSuperClass) {
  EXPECT_EQ(expert_names({"fish", "a"}), (std::vector<std::string>{"0 fish", "1 a"}));
  EXPECT_EQ(expert_names({std::string(30, 'x')})[0], "0 " + std::string(24, 'x') + "...");
  EXPECT_EQ(expert_names({std::string(23, 'x') + "\xC3\xA9z"})[0], "0 " + std::string(23, 'x') + "...");
  EXPECT_TRUE(expert_names({}).empty());
}

}  // namespace sparsight::superclass_text_test
