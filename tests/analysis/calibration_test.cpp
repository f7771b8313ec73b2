#include "sparsight/analysis/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

namespace sparsight::calibration_test {
namespace {

// Logits of two classes whose softmax gives the first one the probability p.
at::Tensor with_probability(std::vector<double> p) {
  std::vector<double> logits;
  for (const double value : p) logits.insert(logits.end(), {std::log(value / (1 - value)), 0});
  return at::tensor(logits, at::kDouble).view({-1, 2});
}

}  // namespace

// Worked by hand: at confidence 0.9 one of two is right, at 0.62 both are: (2 |0.5 - 0.9| + 2 |1 - 0.62|) / 4 = 0.39.
TEST(Calibration, IsTheMeanGapBetweenAccuracyAndConfidence) {
  Calibration calibration;
  calibration.add(with_probability({0.9, 0.9, 0.62}), at::tensor({0, 1, 0}, at::kLong));
  calibration.add(with_probability({0.62}), at::tensor({0}, at::kLong));
  const Json measures = calibration.measures();
  EXPECT_NEAR(measures["ece"].get<double>(), 0.39, 1e-12);
  ASSERT_EQ(measures["bins"].size(), 2u);
  EXPECT_EQ(measures["bins"][1]["images"], 2);
  EXPECT_NEAR(measures["bins"][1]["confidence"].get<double>(), 0.9, 1e-12);
  EXPECT_EQ(measures["bins"][1]["accuracy"], 0.5);
}

// Gaps of one interval cancel out: confidences 0.81 and 0.85 share the thirteenth of fifteen.
TEST(Calibration, GapsWithinAnIntervalCancelOut) {
  Calibration calibration;
  calibration.add(with_probability({0.81, 0.85, 0.81, 0.85, 0.83}), at::tensor({0, 0, 0, 0, 1}, at::kLong));
  EXPECT_EQ(calibration.measures()["bins"].size(), 1u);
  EXPECT_NEAR(calibration.measures()["ece"].get<double>(), 0.03, 1e-12);
}

TEST(Calibration, LeavesOutWhatHasNoClassOrIsNotFinite) {
  Calibration calibration;
  EXPECT_TRUE(calibration.measures().is_null());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  calibration.add(at::tensor({nan, 0.0, 3.0, 0.0}, at::kDouble).view({2, 2}), at::tensor({0, -1}, at::kLong));
  EXPECT_TRUE(calibration.measures().is_null());
  calibration.add(at::tensor({800.0, 0.0}, at::kDouble).view({1, 2}), at::tensor({0}, at::kLong));
  EXPECT_EQ(calibration.measures()["ece"], 0.0);
}

}  // namespace sparsight::calibration_test
