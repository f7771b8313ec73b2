#include "sparsight/data/decorators/stratified.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/data/decorators/concat.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/sets/array_set.h"

namespace sparsight::stratified_test {

DataSetPtr labelled(const std::vector<int64_t>& labels, const std::string& part = "train", int64_t classes = 10) {
  DataInfo info;
  info.name = "test";
  info.classes = number_names(classes);
  info.domains = {"one"};
  return std::make_shared<ArraySet>(
      info,
      LabelledArray{at::zeros({static_cast<int64_t>(labels.size()), 1, 2, 2}, at::kByte), labels, part, "labels"});
}

std::vector<int64_t> repeated(const std::vector<int64_t>& counts) {
  std::vector<int64_t> labels;
  for (size_t k = 0; k < counts.size(); ++k) labels.insert(labels.end(), counts[k], static_cast<int64_t>(k));
  return labels;
}

std::map<int64_t, int64_t> histogram(const DataSet& set, const std::vector<int64_t>& indices) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t index : indices) ++counts[set.label(index)];
  return counts;
}

TEST(StratifiedSplit, KeepsTheBalanceAndLosesNothing) {
  const DataSetPtr set = labelled(repeated({100, 50, 7, 3}));
  const auto [rest, kept] = stratified_split(*set, 0.1, 1);
  EXPECT_EQ(kept.size(), 16u);  // round(0.1 * 160)
  const auto counts = histogram(*set, kept);
  EXPECT_EQ(counts.at(0), 10);
  EXPECT_EQ(counts.at(1), 5);
  std::set<int64_t> all(rest.begin(), rest.end());
  all.insert(kept.begin(), kept.end());
  EXPECT_EQ(all.size(), 160u);
  EXPECT_EQ(rest.size() + kept.size(), 160u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(StratifiedSplit, RoundingDoesNotAddUp) {
  // Five of each of 100 classes, a tenth: half an image a class. Rounding each up or down would give 100 or 0 images.
  const DataSetPtr set = labelled(repeated(std::vector<int64_t>(100, 5)), "train", 100);
  EXPECT_EQ(stratified_split(*set, 0.1, 1).second.size(), 50u);
}

TEST(StratifiedSplit, DependsOnTheSeedOnly) {
  const DataSetPtr set = labelled(repeated({50, 50}));
  EXPECT_EQ(stratified_split(*set, 0.2, 3), stratified_split(*set, 0.2, 3));
  EXPECT_NE(stratified_split(*set, 0.2, 3), stratified_split(*set, 0.2, 4));
}

TEST(BalancedSubset, TakesAsManyOfEachClassAsItCan) {
  const DataSetPtr set = labelled(repeated({100, 100, 2}));
  const auto counts = histogram(*set, balanced_subset(*set, 12, 1));
  EXPECT_EQ(counts.at(0), 5);  // (12 - 2) / 2: the small class leaves room
  EXPECT_EQ(counts.at(1), 5);
  EXPECT_EQ(counts.at(2), 2);
  EXPECT_EQ(balanced_subset(*set, 1000, 1).size(), 202u);
}

TEST(Subset, GivesTheImagesOfItsIndices) {
  const SubsetDataSet subset(labelled({4, 5, 6}), {2, 0});
  EXPECT_EQ(subset.size(), 2);
  EXPECT_EQ(subset.label(0), 6);
  EXPECT_EQ(subset.get(1).id, "train/0");
  EXPECT_THROW(SubsetDataSet(labelled({4}), {1}), std::logic_error);
}

TEST(Concat, PutsPartsOneAfterTheOther) {
  const ConcatDataSet set({labelled({1, 2}, "a"), labelled({}, "b"), labelled({3}, "c")});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.label(2), 3);
  EXPECT_EQ(set.get(2).id, "c/0");
  EXPECT_EQ(set.get(1).id, "a/1");
  EXPECT_EQ(set.domain(0), 0);
  EXPECT_THROW(set.get(3), std::logic_error);
  EXPECT_THROW(ConcatDataSet({labelled({1}), labelled({1}, "x", 11)}), Error);
}

}  // namespace sparsight::stratified_test
