#include "sparsight/eval/confused_images.h"

#include <cmath>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::confused_images_test {
namespace {

// Images of class `label` of K = 3, each with the logits (0, z, -9). first: the index of the first one in the split.
void observe(ConfusedImages& images, const std::vector<float>& z, int64_t first, int64_t label = 0) {
  Batch batch;
  const auto count = static_cast<int64_t>(z.size());
  batch.labels = at::full({count}, label, at::kLong);
  batch.indices = at::arange(first, first + count, at::kLong);
  std::vector<float> logits;
  for (int64_t i = 0; i < count; ++i) {
    batch.ids.push_back("image " + std::to_string(first + i));
    logits.insert(logits.end(), {0, z[static_cast<size_t>(i)], -9});
  }
  ModelOutput output;
  output.logits = at::tensor(logits).view({count, 3});
  images.observe(batch, output);
}

}  // namespace

// softmax(0, ln 3, -9)_1 = 3 / (4 + e^-9).
TEST(ConfusedImages, KeepsTheMostProbableOfEachCell) {
  ConfusedImages images(TaskLoss::cross_entropy);
  observe(images, {1, -1, std::log(3.0F)}, 0);  // the second one is right
  observe(images, {0.5F}, 3);
  observe(images, {-2, 5}, 4, 1);  // of class 1: the first is taken for class 0
  const std::vector<ConfusedCell> cells = images.cells();
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(std::make_pair(cells[0].truth, cells[0].predicted), std::make_pair(int64_t{0}, int64_t{1}));
  EXPECT_EQ(cells[0].images, 3);
  ASSERT_EQ(cells[0].worst.size(), 3u);
  EXPECT_EQ(cells[0].worst[0].index, 2);
  EXPECT_EQ(cells[0].worst[0].id, "image 2");
  EXPECT_NEAR(cells[0].worst[0].probability, 3 / (4 + std::exp(-9.0)), 1e-6);
  EXPECT_EQ(cells[0].worst[1].index, 0);
  EXPECT_EQ(cells[0].worst[2].index, 3);
  EXPECT_EQ(std::make_pair(cells[1].truth, cells[1].predicted), std::make_pair(int64_t{1}, int64_t{0}));
  EXPECT_EQ(cells[1].images, 1);
}

TEST(ConfusedImages, IsBoundedAndOrdersTiesByIndex) {
  ConfusedImages images(TaskLoss::cross_entropy);
  observe(images, std::vector<float>(40, 1), 0);
  observe(images, {2}, 40);
  const ConfusedCell cell = images.cells().at(0);
  EXPECT_EQ(cell.images, 41);
  ASSERT_EQ(cell.worst.size(), ConfusedImages::kMaxImages);
  EXPECT_EQ(cell.worst[0].index, 40);
  for (int64_t i = 1; i < std::ssize(cell.worst); ++i) EXPECT_EQ(cell.worst[static_cast<size_t>(i)].index, i - 1);
}

// sigmoid(ln 3) = 3/4.
TEST(ConfusedImages, ProbabilitiesAreThoseOfTheTaskLoss) {
  ConfusedImages images(TaskLoss::sigmoid_cross_entropy);
  observe(images, {std::log(3.0F)}, 0);
  EXPECT_NEAR(images.cells().at(0).worst.at(0).probability, 0.75, 1e-6);
}

TEST(ConfusedImages, AreNoneOfMultiLabelDataAndFiniteForLogitsThatAreNot) {
  ConfusedImages images(TaskLoss::cross_entropy);
  Batch batch;
  batch.labels = at::tensor({0}, at::kLong);
  batch.label_sets = at::ones({1, 3}, at::kBool);
  ModelOutput output;
  output.logits = at::tensor({0.0F, 1.0F, 0.0F}).view({1, 3});
  images.observe(batch, output);
  EXPECT_TRUE(images.cells().empty());
  observe(images, {std::numeric_limits<float>::infinity()}, 0);
  EXPECT_EQ(images.cells().at(0).worst.at(0).probability, 0) << "inf - inf is no number";
}

}  // namespace sparsight::confused_images_test
