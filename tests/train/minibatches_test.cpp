#include "sparsight/train/minibatches.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace sparsight::minibatches_test {
namespace {

Batch numbered(int64_t number) {
  Batch batch;
  batch.labels = at::full({1}, number, at::kLong);
  return batch;
}

int64_t first_label(const Batch& batch) { return batch.labels[0].item<int64_t>(); }

TEST(Minibatches, AreReadWhenTheyAreAskedFor) {
  int64_t read = 0;
  Minibatches minibatches(4, [&] { return numbered(read++); });
  EXPECT_EQ(read, 0);
  EXPECT_EQ(first_label(minibatches.next()), 0);
  EXPECT_EQ(read, 1);
  const std::vector<Batch> rest = minibatches.all();
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(first_label(rest[2]), 3);
  EXPECT_EQ(minibatches.left(), 0);
  EXPECT_THROW(minibatches.next(), std::logic_error);
}

TEST(Minibatches, CanBeAtHand) {
  Minibatches minibatches({numbered(7), numbered(8)});
  EXPECT_EQ(minibatches.left(), 2);
  EXPECT_EQ(first_label(minibatches.next()), 7);
  EXPECT_EQ(first_label(minibatches.next()), 8);
}

}  // namespace
}  // namespace sparsight::minibatches_test
