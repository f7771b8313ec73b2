// The task loss with class weights, by hand and against torch's cross entropy.
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/eval/task_loss.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::class_weighted_loss_test {
namespace {

const double kLog3 = std::log(3.0);

// softmax([0, ln 3]) = [1/4, 3/4], twice.
at::Tensor quarters() { return torch::tensor({{0.0, kLog3}, {0.0, kLog3}}, torch::kDouble); }

Batch labelled(const std::vector<int64_t>& labels) {
  Batch batch;
  batch.labels = torch::tensor(labels, torch::kLong);
  return batch;
}

// What torch::nn::functional::cross_entropy calls.
at::Tensor torch_loss(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& weight,
                      double label_smoothing = 0) {
  return at::cross_entropy_loss(logits, target, weight, at::Reduction::Mean, -100, label_smoothing);
}

const std::vector<int64_t> kLabels{2, 0, 2, 1, 3};

at::Tensor some_weights() { return torch::tensor({0.5, 3.0, 1.25, 0.0}, torch::kDouble); }

at::Tensor smoothed(const std::vector<int64_t>& labels, double smoothing) {
  const at::Tensor one_hot = at::one_hot(torch::tensor(labels, torch::kLong), 4).to(torch::kDouble);
  return (1 - smoothing) * one_hot + smoothing / 4;
}

}  // namespace

TEST(ClassWeightedLoss, ByHand) {
  const at::Tensor weights = torch::tensor({3.0, 1.0}, torch::kDouble);
  // Image 0 of class 1 has weight 1, image 1 of class 0 has weight 3.
  const double expected = (-std::log(0.75) - 3 * std::log(0.25)) / (1 + 3);
  EXPECT_NEAR(task_loss(quarters(), labelled({1, 0}), TaskLoss::cross_entropy, weights).item<double>(), expected,
              1e-12);
  // Targets of a mixture: the first image is half of each class, the second of class 0 alone; divided by two images.
  Batch mixed = labelled({1, 0});
  mixed.targets = torch::tensor({{0.5, 0.5}, {1.0, 0.0}}, torch::kDouble);
  mixed.mixed = true;
  const double soft = (-1.5 * std::log(0.25) - 0.5 * std::log(0.75) - 3 * std::log(0.25)) / 2;
  EXPECT_NEAR(task_loss(quarters(), mixed, TaskLoss::cross_entropy, weights).item<double>(), soft, 1e-12);
}

TEST(ClassWeightedLoss, AgreesWithTorch) {
  const at::Tensor logits = test::random_tensor({5, 4}, 3), weights = some_weights();
  Batch batch = labelled(kLabels);
  const auto own = [&](const at::Tensor& z) {
    return task_loss(z, batch, TaskLoss::cross_entropy, weights).item<double>();
  };
  EXPECT_NEAR(own(logits), torch_loss(logits, batch.labels, weights).item<double>(), 1e-12);
  EXPECT_NEAR(own(logits.to(torch::kFloat)), torch_loss(logits, batch.labels, weights).item<double>(), 1e-5)
      << "by the kernels";
  batch.targets = smoothed(kLabels, 0.3);
  EXPECT_NEAR(own(logits), torch_loss(logits, batch.labels, weights, 0.3).item<double>(), 1e-12) << "label smoothing";
  batch.targets = batch.targets.lerp(batch.targets.flip({0}), 0.25);
  batch.mixed = true;
  EXPECT_NEAR(own(logits), torch_loss(logits, batch.targets, weights).item<double>(), 1e-12) << "probabilities";
  EXPECT_NEAR(own(logits.to(torch::kFloat)), torch_loss(logits, batch.targets, weights).item<double>(), 1e-5);
}

TEST(ClassWeightedLoss, EqualWeightsAreNoWeights) {
  const at::Tensor logits = test::random_tensor({5, 4}, 4), weights = torch::full({4}, 2.5, torch::kDouble);
  Batch batch = labelled(kLabels);
  for (const double smoothing : {0.0, 0.2}) {
    if (smoothing > 0) batch.targets = smoothed(kLabels, smoothing);
    EXPECT_NEAR(task_loss(logits, batch, TaskLoss::cross_entropy, weights).item<double>(),
                task_loss(logits, batch).item<double>(), 1e-12);
  }
}

TEST(ClassWeightedLoss, ABatchOfClassesWithoutWeightHasLossZeroAndNoGradient) {
  const at::Tensor weights = torch::tensor({0.0, 0.0, 0.0, 1.0}, torch::kDouble);
  at::Tensor logits = test::random_tensor({2, 4}, 5).requires_grad_(true);
  Batch batch = labelled({0, 2});
  for (const bool smooth : {false, true}) {
    if (smooth) batch.targets = smoothed({0, 2}, 0.3);
    logits.mutable_grad() = at::Tensor();
    const at::Tensor loss = task_loss(logits, batch, TaskLoss::cross_entropy, weights);
    EXPECT_EQ(loss.item<double>(), 0);
    loss.backward();
    EXPECT_EQ(logits.grad().abs().max().item<double>(), 0);
  }
}

TEST(ClassWeightedLoss, GradientAgreesWithFiniteDifferences) {
  const at::Tensor logits = test::random_tensor({5, 4}, 6), weights = some_weights();
  Batch batch = labelled(kLabels);
  const auto loss = [&] { return task_loss(logits, batch, TaskLoss::cross_entropy, weights); };
  EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
  batch.targets = smoothed(kLabels, 0.3);
  EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
  batch.mixed = true;
  EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
}

}  // namespace sparsight::class_weighted_loss_test
