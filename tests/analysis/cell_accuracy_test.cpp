#include "sparsight/analysis/cell_accuracy.h"

#include <gtest/gtest.h>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

namespace sparsight::cell_accuracy_test {

at::Tensor longs(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

TEST(CellAccuracy, P39_TellsEachCombinationAndTheWorst) {
  CellAccuracy cells({"no", "yes"}, {"dark", "bright"});
  // Predictions 1, 0, 1, 1.
  const at::Tensor logits = at::tensor(std::vector<float>{0, 1, 2, 1, 0, 3, -1, 0}, at::kFloat).reshape({4, 2});
  cells.add(logits, longs({1, 0, 0, 1}), longs({0, 0, 1, 0}));
  cells.add(logits, longs({0, 0, 1, 1}), longs({0, 0, 1, 1}));
  // no/dark: image 1 of the first batch is right, of the second batch image 0 is wrong and image 1 right: 2 of 3.
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
  // Predictions b, a.
  cells.add(at::tensor(std::vector<float>{0, 1, 0, 2, 1, 0}, at::kFloat).reshape({2, 3}), longs({1, 1}), longs({0, 0}));
  EXPECT_EQ(cells.cells(), Json::array({Json{{"class", "b"}, {"domain", "all"}, {"images", 2}, {"accuracy", 0.5}}}));
}

TEST(CellAccuracy, CountsManyThousandCombinationsOfWhichFewHaveImages) {
  constexpr int64_t kClasses = 100000, kDomains = 50000;  // counts of all would take 80 GB
  std::vector<std::string> domains(kDomains, "d");
  domains.back() = "last";
  CellAccuracy cells(std::vector<std::string>(kClasses, "c"), domains);
  const at::Tensor logits = at::zeros({2, kClasses});  // the largest is the first
  cells.add(logits, longs({kClasses - 1, 0}), longs({kDomains - 1, 3}));
  const Json found = cells.cells();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Json{{"class", "c"}, {"domain", "d"}, {"images", 1}, {"accuracy", 1.0}}));
  EXPECT_EQ(found[1], (Json{{"class", "c"}, {"domain", "last"}, {"images", 1}, {"accuracy", 0.0}}));
}

TEST(CellAccuracy, WithoutImagesThereIsNoWorstCell) {
  const CellAccuracy cells({"a"}, {"all"});
  EXPECT_EQ(cells.cells(), Json::array());
  EXPECT_TRUE(worst_cell(cells.cells()).is_null());
}

}  // namespace sparsight::cell_accuracy_test
