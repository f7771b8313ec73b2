#include "sparsight/optim/weight_average.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::weight_average_test {
namespace {

TEST(WeightAverage, FollowsTheRecurrenceByHand) {
  const at::Tensor weight = at::tensor({0.0});
  WeightAverage average({{"w", weight}}, exponential_average(0.5));
  weight.fill_(1.0);
  average.update(0);  // d = min(0.5, 1/10) = 0.1: 0.1 * 0 + 0.9 * 1
  EXPECT_DOUBLE_EQ(average.tensors()[0].second.item<double>(), 0.9);
  weight.fill_(2.0);
  average.update(1000);  // d = 0.5: 0.45 + 1
  EXPECT_DOUBLE_EQ(average.tensors()[0].second.item<double>(), 1.45);
}

TEST(WeightAverage, MeanStartsWhereItIsAskedToAndTakesEverySecondUpdate) {
  const at::Tensor weight = at::tensor({7.0});
  WeightAverage average({{"w", weight}}, mean_from(/*start=*/2, /*every=*/2));
  EXPECT_EQ(average.name(), "swa");
  // Updates 0 and 1 are copied; the mean counts updates 2, 4 and 6: (30 + 50 + 100) / 3 = 60.
  const std::vector<double> weights{10, 20, 30, 40, 50, 60, 100}, expected{10, 20, 30, 30, 40, 40, 60};
  for (size_t i = 0; i < weights.size(); ++i) {
    weight.fill_(weights[i]);
    average.update(static_cast<int64_t>(i));
    EXPECT_DOUBLE_EQ(average.tensors()[0].second.item<double>(), expected[i]) << i;
  }
}

TEST(WeightAverage, LeavesAHandedOverTensorToTheCaller) {
  const at::Tensor a = at::tensor({0.0}), b = at::tensor({0.0});
  WeightAverage average({{"a", a}, {"b", b}}, exponential_average(0.5));
  const at::Tensor own = average.delegate_average(a);
  EXPECT_FALSE(average.delegate_average(at::tensor({0.0})).defined());
  a.fill_(2.0), b.fill_(2.0);
  average.update(1000);
  EXPECT_EQ(average.tensors()[0].second.item<double>(), 0);
  EXPECT_EQ(average.tensors()[1].second.item<double>(), 1);
  own.fill_(5.0);
  EXPECT_EQ(average.tensors()[0].second.item<double>(), 5);
}

TEST(WeightAverage, SwapPutsTheAverageIntoTheModelAndBack) {
  const at::Tensor weight = at::tensor({0.0});
  WeightAverage average({{"w", weight}}, exponential_average(0.5));
  weight.fill_(3.0);
  {
    WeightAverage::Swap swap(&average);
    EXPECT_EQ(weight.item<double>(), 0.0);
  }
  EXPECT_EQ(weight.item<double>(), 3.0);
}

}  // namespace
}  // namespace sparsight::weight_average_test
