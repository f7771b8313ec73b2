// A step of an optimiser, and what it should change.
#pragma once

#include <vector>

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "sparsight/optim/optimizer.h"

namespace sparsight::testing {

// The change of `value` in one step with this gradient.
inline at::Tensor step(Optimizer& optimizer, const at::Tensor& value, const at::Tensor& gradient, double lr) {
  const at::Tensor before = value.clone();
  value.mutable_grad() = gradient;
  optimizer.step(lr);
  return value - before;
}

inline void expect_near(const at::Tensor& got, const std::vector<double>& expected, double tolerance) {
  const at::Tensor flat = got.to(at::kDouble).reshape({-1});
  ASSERT_EQ(flat.numel(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < flat.numel(); ++i) EXPECT_NEAR(flat[i].item<double>(), expected[i], tolerance) << i;
}

}  // namespace sparsight::testing
