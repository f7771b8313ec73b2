#include "sparsight/optim/weight_average.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::weight_average_test {
namespace {

TEST(WeightAverage, FollowsTheRecurrenceByHand) {
  const at::Tensor weight = at::tensor({0.0});
  WeightAverage average({{"w", weight}}, 0.5);
  weight.fill_(1.0);
  average.update(0);  // d = min(0.5, 1/10) = 0.1: 0.1 * 0 + 0.9 * 1
  EXPECT_DOUBLE_EQ(average.tensors()[0].second.item<double>(), 0.9);
  weight.fill_(2.0);
  average.update(1000);  // d = 0.5: 0.45 + 1
  EXPECT_DOUBLE_EQ(average.tensors()[0].second.item<double>(), 1.45);
}

TEST(WeightAverage, SwapPutsTheAverageIntoTheModelAndBack) {
  const at::Tensor weight = at::tensor({0.0});
  WeightAverage average({{"w", weight}}, 0.5);
  weight.fill_(3.0);
  {
    WeightAverage::Swap swap(&average);
    EXPECT_EQ(weight.item<double>(), 0.0);
  }
  EXPECT_EQ(weight.item<double>(), 3.0);
}

}  // namespace
}  // namespace sparsight::weight_average_test
