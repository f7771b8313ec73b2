// Comparison of tensors in tests.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

namespace sparsight::test {

// Passes if shapes agree and no element differs by more than `tolerance`.
inline ::testing::AssertionResult near(const at::Tensor& got, const at::Tensor& expected, double tolerance) {
  if (!got.defined()) return ::testing::AssertionFailure() << "undefined";
  if (got.sizes() != expected.sizes())
    return ::testing::AssertionFailure() << "shape " << got.sizes() << ", expected " << expected.sizes();
  const at::Tensor a = got.detach().to(torch::kDouble), b = expected.detach().to(torch::kDouble);
  if (torch::allclose(a, b, 0, tolerance)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got\n"
                                       << a << "\nexpected\n"
                                       << b << "\nlargest difference " << (a - b).abs().max().item<double>();
}

inline ::testing::AssertionResult near(const at::Tensor& got, double expected, double tolerance) {
  return near(got, torch::tensor(expected, torch::kDouble), tolerance);
}

}  // namespace sparsight::test
