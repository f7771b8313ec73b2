#include "sparsight/analysis/cell_accuracy.h"

#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

namespace sparsight::cell_accuracy_test {

at::Tensor longs(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

TEST(CellAccuracy, P39_TellsEachCombinationAndTheWorst) {
  CellAccuracy cells({"no", "yes"}, {"dark", "bright"});
  // Answers 1, 0, 1, 1.
  const at::Tensor logits = at::tensor(std::vector<float>{0, 1, 2, 1, 0, 3, -1, 0}, at::kFloat).reshape({4, 2});
  cells.add(logits, longs({1, 0, 0, 1}), longs({0, 0, 1, 0}));
  cells.add(logits, longs({0, 0, 1, 1}), longs({0, 0, 1, 1}));
  // no/dark: right 0, 1 of the second answer, wrong the first of the second batch, right its second: 2 of 3.
  const Json found = cells.cells();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], (Json{{"class", "no"}, {"domain", "dark"}, {"images", 3}, {"accuracy", 2.0 / 3}}));
  EXPECT_EQ(found[1], (Json{{"class", "no"}, {"domain", "bright"}, {"images", 1}, {"accuracy", 0.0}}));
  EXPECT_EQ(found[2], (Json{{"class", "yes"}, {"domain", "dark"}, {"images", 2}, {"accuracy", 1.0}}));
  EXPECT_EQ(found[3], (Json{{"class", "yes"}, {"domain", "bright"}, {"images", 2}, {"accuracy", 1.0}}));
  EXPECT_EQ(worst_cell(found), 0.0);
}

TEST(CellAccuracy, OneDomainIsTheAccuracyOfEachClass) {
  CellAccuracy cells({"a", "b", "c"}, {"all"});
  // Answers b, a.
  cells.add(at::tensor(std::vector<float>{0, 1, 0, 2, 1, 0}, at::kFloat).reshape({2, 3}), longs({1, 1}), longs({0, 0}));
  EXPECT_EQ(cells.cells(), Json::array({Json{{"class", "b"}, {"domain", "all"}, {"images", 2}, {"accuracy", 0.5}}}));
}

TEST(CellAccuracy, CountsNothingWhereThereAreTooMany) {
  CellAccuracy cells(std::vector<std::string>(kMaxCells / 2 + 1, "a"), {"dark", "bright"});
  cells.add(at::tensor(std::vector<float>{0, 1}, at::kFloat).reshape({1, 2}), longs({1}), longs({0}));
  EXPECT_TRUE(cells.cells().is_null());
  EXPECT_TRUE(worst_cell(cells.cells()).is_null());
}

}  // namespace sparsight::cell_accuracy_test
