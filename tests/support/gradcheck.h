// Central-difference check of gradients, in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace sparsight::test {

// The largest |analytic - numeric| over all elements of all `inputs` (contiguous float64 leaves), where each gradient
// is compared on the scale max(1, |numeric|). `f` returns a scalar.
inline double gradient_error(const std::function<at::Tensor()>& f, std::vector<at::Tensor> inputs, double step = 1e-5) {
  for (at::Tensor& input : inputs) {
    input.requires_grad_(true);
    input.mutable_grad() = at::Tensor();
  }
  f().backward();
  const torch::NoGradGuard no_grad;
  double worst = 0;
  for (at::Tensor& input : inputs) {
    const at::Tensor grad = input.grad().defined() ? input.grad().contiguous() : torch::zeros_like(input);
    double* x = input.data_ptr<double>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      const double kept = x[i];
      x[i] = kept + step;
      const double above = f().item<double>();
      x[i] = kept - step;
      const double below = f().item<double>();
      x[i] = kept;
      const double numeric = (above - below) / (2 * step);
      worst = std::max(worst, std::abs(grad.data_ptr<double>()[i] - numeric) / std::max(1.0, std::abs(numeric)));
    }
  }
  return worst;
}

}  // namespace sparsight::test
