#include "sparsight/train/superclasses/out_of_fold.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::out_of_fold_test {
namespace {

// Labels without pictures.
class LabelSet : public DataSet {
 public:
  explicit LabelSet(std::vector<int64_t> labels) : labels_(std::move(labels)) { info_.classes = {"a", "b", "c"}; }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return std::ssize(labels_); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  Sample get(int64_t) const override { fail("has no pictures"); }

 private:
  DataInfo info_;
  std::vector<int64_t> labels_;
};

TEST(OutOfFold, FoldsAreBalancedOverClasses) {
  std::vector<int64_t> labels(13, 0);
  labels.insert(labels.end(), 20, 1);
  labels.insert(labels.end(), 4, 2);
  const std::vector<int64_t> folds = balanced_folds(LabelSet(labels), 5, 7);
  std::map<int64_t, std::vector<int64_t>> by_class;
  std::vector<int64_t> sizes(5);
  for (size_t i = 0; i < folds.size(); ++i) {
    by_class[labels[i]].resize(5);
    ++by_class[labels[i]].at(static_cast<size_t>(folds[i]));
    ++sizes.at(static_cast<size_t>(folds[i]));
  }
  for (const auto& [label, counts] : by_class)
    EXPECT_LE(std::ranges::max(counts) - std::ranges::min(counts), 1) << label;
  EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1);
  EXPECT_EQ(folds, balanced_folds(LabelSet(labels), 5, 7));
  EXPECT_NE(folds, balanced_folds(LabelSet(labels), 5, 8));
}

TEST(OutOfFold, AClassNeedsTwoImages) {
  EXPECT_NE(testing::error_text<UsageError>([] {
              balanced_folds(LabelSet({0, 0, 1}), 2, 0);
            }).find("class \"b\""),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::out_of_fold_test
