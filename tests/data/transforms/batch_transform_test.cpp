#include "sparsight/data/transforms/batch_transform.h"

#include <cmath>

#include <ATen/ops/arange.h>
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
  EXPECT_FALSE(batch.mixed);
}

TEST(BatchTransform, MixesTargetsLikeImages) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Batch batch = black_and_white(4);
    RandomStream random(seed, "test");
    BatchTransform(options(0.8, 0, 0), 3)(batch, random);
    EXPECT_TRUE(batch.mixed);
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

// Image b is filled with b, of as many classes as images: the pixels and targets of a mixed batch say what was mixed.
Batch numbered(int64_t count, int64_t side) {
  Batch batch;
  batch.labels = at::arange(count, at::kLong);
  batch.images = batch.labels.to(at::kFloat).view({count, 1, 1, 1}).expand({count, 1, side, side}).contiguous();
  return batch;
}

TEST(BatchTransform, M33_PairsAnImageWithItsMirrorInTheBatch) {
  constexpr int64_t kCount = 6;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Batch batch = numbered(kCount, 4);
    RandomStream random(seed, "test");
    BatchTransform(options(0.8, 0, 0.1), kCount)(batch, random);
    const double off = 0.1 / kCount, on = 0.9 + off;
    // One lambda: that of the first image holds for all. target[b][b] = off + lambda (on - off)
    const double lambda = (batch.targets[0][0].item<double>() - off) / (on - off);
    for (int64_t b = 0; b < kCount; ++b) {
      const int64_t partner = kCount - 1 - b;
      EXPECT_NEAR(batch.targets[b].sum().item<double>(), 1, 1e-6);
      EXPECT_NEAR(batch.targets[b][b].item<double>(), off + lambda * (on - off), 1e-6) << b;
      EXPECT_NEAR(batch.targets[b][partner].item<double>(), off + (1 - lambda) * (on - off), 1e-6) << b;
      EXPECT_NEAR(batch.images[b][0][1][2].item<double>(),
                  lambda * static_cast<double>(b) + (1 - lambda) * static_cast<double>(partner), 1e-5)
          << b;
    }
  }
}

// Boxes reach over the border and are cut there: what counts is the area that was pasted.
TEST(BatchTransform, M33_CutmixCorrectsLambdaToThePastedArea) {
  constexpr int64_t kCount = 4, kSide = 10;
  int cut_at_border = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Batch batch = numbered(kCount, kSide);
    RandomStream random(seed, "test");
    BatchTransform(options(0, 1, 0.1), kCount)(batch, random);
    const double off = 0.1 / kCount;
    for (int64_t b = 0; b < kCount; ++b) {
      const at::Tensor pasted = batch.images[b][0].eq(static_cast<double>(kCount - 1 - b));
      const double share = pasted.sum().item<double>() / (kSide * kSide);
      EXPECT_NEAR(batch.targets[b][kCount - 1 - b].item<double>(), off + share * 0.9, 1e-6) << seed;
      EXPECT_NEAR(batch.targets[b].sum().item<double>(), 1, 1e-6);
      const int64_t rows = pasted.any(1).sum().item<int64_t>(), columns = pasted.any(0).sum().item<int64_t>();
      EXPECT_EQ(pasted.sum().item<int64_t>(), rows * columns);  // one box, the same in every image
      cut_at_border += b == 0 && rows != columns;
    }
  }
  EXPECT_GT(cut_at_border, 20);
}

TEST(BatchTransform, M33_CutmixIsChosenHalfOfTheTime) {
  const int n = 2000;
  int cut = 0;
  for (uint64_t seed = 0; seed < n; ++seed) {
    Batch batch = black_and_white(8);
    RandomStream random(seed, "test");
    BatchTransform(options(0.8, 1, 0.1), 3)(batch, random);
    const double white = batch.images[0].max().item<double>();
    cut += white == 1 || (white == 0 && batch.images[1].min().item<double>() == 1);
  }
  EXPECT_NEAR(cut / static_cast<double>(n), 0.5, 4 * std::sqrt(0.25 / n) + 0.02);  // mixups of about 0 or 1 look alike
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
