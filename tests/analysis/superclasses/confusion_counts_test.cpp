#include "sparsight/analysis/superclasses/confusion_counts.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::confusion_counts_test {
namespace {

using testing::error_text;

at::Tensor labels(std::initializer_list<int64_t> values) { return at::tensor(values, at::kLong); }
at::Tensor table(std::initializer_list<double> values, int64_t columns) {
  return at::tensor(values, at::kDouble).view({-1, columns});
}

TEST(ConfusionCounts, M22_HardCountsPredictions) {
  ConfusionCounts confusion(ConfusionKind::hard, 3);
  confusion.add(table({5, 1, 0, 0, 2, 9, 1, 3, 3}, 3), labels({0, 0, 2}));  // 1 and 2 are equal: 1
  confusion.add(table({0, 0, 1, 7, 0, 0}, 3), labels({1, -1}));
  const at::Tensor counts = confusion.counts();
  EXPECT_EQ(counts.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(counts, at::tensor({1, 0, 1, 0, 0, 1, 0, 1, 0}, at::kLong).view({3, 3})));
  EXPECT_TRUE(at::equal(counts.sum(1), labels({2, 1, 1}))) << "rows sum to the images of the class";
  EXPECT_EQ(confusion.images(), 4);
}

// Softmax of (0, log 3) is (1/4, 3/4), of (log 4, 0) is (4/5, 1/5).
TEST(ConfusionCounts, M22_SoftIsTheMeanProbability) {
  ConfusionCounts confusion(ConfusionKind::soft, 2);
  confusion.add(table({0, std::log(3.0), std::log(4.0), 0}, 2), labels({0, 0}));
  EXPECT_TRUE(test::near(confusion.counts(), table({0.525, 0.475, 0, 0}, 2), 1e-12));
  confusion.add(table({1000, 0}, 2), labels({1}));
  EXPECT_TRUE(test::near(confusion.counts(), table({0.525, 0.475, 1, 0}, 2), 1e-12));
}

TEST(ConfusionCounts, M22_Top5GivesAFifthToEachOfFive) {
  ConfusionCounts confusion(ConfusionKind::top5, 6);
  confusion.add(table({9, 8, 7, 6, 5, 4, 1, 1, 1, 1, 1, 1}, 6), labels({2, 2}));
  const at::Tensor row = confusion.counts()[2];
  EXPECT_TRUE(test::near(row, at::tensor({0.4, 0.4, 0.4, 0.4, 0.4, 0.0}, at::kDouble), 1e-12));
  EXPECT_NEAR(row.sum().item<double>(), 2, 1e-12);
  EXPECT_NE(error_text<UsageError>([] { ConfusionCounts(ConfusionKind::top5, 5); }), "");
}

TEST(ConfusionCounts, RefusesLogitsThatAreNotFinite) {
  ConfusionCounts confusion(ConfusionKind::hard, 2);
  EXPECT_NE(error_text([&] {
              confusion.add(at::full({1, 2}, NAN), labels({0}));
            }).find("not finite"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::confusion_counts_test
