#include "sparsight/eval/task_loss.h"

#include <cmath>

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::task_loss_test {
namespace {

// softmax([0, ln 3]) = [1/4, 3/4]
const float log3 = std::log(3.0f);

TEST(TaskLoss, HardLabelsByHand) {
  Batch batch;
  batch.labels = at::tensor({1, 0}, at::kLong);
  const at::Tensor logits = at::tensor({0.0f, log3, 0.0f, log3}).view({2, 2});
  EXPECT_NEAR(task_loss(logits, batch).item<double>(), -(std::log(0.75) + std::log(0.25)) / 2, 1e-6);
  EXPECT_EQ(count_correct(logits, batch.labels), 1);
}

TEST(TaskLoss, SoftTargetsByHand) {
  Batch batch;
  batch.labels = at::tensor({1}, at::kLong);
  batch.targets = at::tensor({0.1f, 0.9f}).view({1, 2});
  const at::Tensor logits = at::tensor({0.0f, log3}).view({1, 2});
  EXPECT_NEAR(task_loss(logits, batch).item<double>(), -(0.1 * std::log(0.25) + 0.9 * std::log(0.75)), 1e-6);
}

}  // namespace
}  // namespace sparsight::task_loss_test
