#include "sparsight/data/transforms/batch_transform.h"

#include <cmath>

#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace sparsight::batch_transform_test {
namespace {

// A black image of class 0 and a white one of class 2, of three classes.
Batch black_and_white(int64_t side) {
  Batch batch;
  batch.images = at::stack({at::zeros({1, side, side}), at::ones({1, side, side})});
  batch.labels = at::tensor({0, 2}, at::kLong);
  return batch;
}

TransformOptions options(double mixup, double cutmix, double smoothing) {
  TransformOptions options;
  options.mixup = mixup;
  options.cutmix = cutmix;
  options.label_smoothing = smoothing;
  return options;
}

TEST(BatchTransform, LeavesABatchAloneByDefault) {
  Batch batch = black_and_white(4);
  RandomStream random(0, "test");
  BatchTransform()(batch, random);
  EXPECT_FALSE(batch.targets.defined());
}

TEST(BatchTransform, SmoothsLabelsByHand) {
  Batch batch = black_and_white(4);
  RandomStream random(0, "test");
  BatchTransform(options(0, 0, 0.3), 3)(batch, random);  // 0.3 / 3 everywhere, 1 - 0.3 + 0.1 at the label
  EXPECT_NEAR(batch.targets[0][0].item<float>(), 0.8, 1e-6);
  EXPECT_NEAR(batch.targets[0][1].item<float>(), 0.1, 1e-6);
  EXPECT_NEAR(batch.targets[1][2].item<float>(), 0.8, 1e-6);
}

TEST(BatchTransform, MixesTargetsLikeImages) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Batch batch = black_and_white(4);
    RandomStream random(seed, "test");
    BatchTransform(options(0.8, 0, 0), 3)(batch, random);
    // The fraction of white in the black image equals class 2's part of its target.
    EXPECT_NEAR(batch.images[0][0][0][0].item<float>(), batch.targets[0][2].item<float>(), 1e-6);
    EXPECT_NEAR(batch.targets[0].sum().item<float>(), 1, 1e-6);
    EXPECT_NEAR(batch.targets[0][0].item<float>(), batch.targets[1][2].item<float>(), 1e-6);
  }
}

TEST(BatchTransform, CutmixTargetsAreTheAreaOfTheBox) {
  double pasted = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Batch batch = black_and_white(8);
    RandomStream random(seed, "test");
    BatchTransform(options(0, 1, 0), 3)(batch, random);
    EXPECT_NEAR(batch.images[0].mean().item<float>(), batch.targets[0][2].item<float>(), 1e-6);
    EXPECT_NEAR(1 - batch.images[1].mean().item<float>(), batch.targets[1][0].item<float>(), 1e-6);
    pasted += batch.targets[0][2].item<float>();
  }
  EXPECT_GT(pasted, 1);
}

TEST(SampleBeta, HasTheMomentsOfTheDistribution) {
  for (const double alpha : {0.2, 1.0, 3.0}) {
    RandomStream random(1, "test");
    const int n = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
      const double x = sample_beta(alpha, random);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));  // of Beta(a, a)
    EXPECT_NEAR(sum / n, 0.5, 4 * std::sqrt(variance / n)) << alpha;
    EXPECT_NEAR(squares / n, variance, 0.1 * variance) << alpha;
  }
}

}  // namespace
}  // namespace sparsight::batch_transform_test
