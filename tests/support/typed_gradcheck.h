// Gradients in any floating type against central differences in float64 (gradcheck.h takes both in float64).
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <torch/types.h>

namespace sparsight::test {

// A scalar function of some leaves, in the leaves' type.
using OfLeaves = std::function<at::Tensor(const std::vector<at::Tensor>& leaves)>;

// The largest |analytic - numeric| over all elements of all leaves, on the scale of the leaf's largest numeric
// gradient. The analytic gradients are those of f on the `values` in `type`; the numeric ones are taken in float64.
inline double gradient_error_in(at::ScalarType type, const OfLeaves& f, const std::vector<at::Tensor>& values,
                                double step = 1e-5) {
  std::vector<at::Tensor> leaves, exact;
  for (const at::Tensor& value : values) {
    exact.push_back(value.detach().to(torch::kDouble).clone(at::MemoryFormat::Contiguous));
    leaves.push_back(exact.back().to(type).clone().requires_grad_(true));
  }
  f(leaves).backward();
  const torch::NoGradGuard no_grad;
  double worst = 0;
  for (size_t n = 0; n < exact.size(); ++n) {
    at::Tensor numeric = torch::zeros_like(exact[n]);
    double *x = exact[n].data_ptr<double>(), *to = numeric.data_ptr<double>();
    for (int64_t i = 0; i < numeric.numel(); ++i) {
      const double kept = x[i];
      x[i] = kept + step;
      const double above = f(exact).item<double>();
      x[i] = kept - step;
      to[i] = (above - f(exact).item<double>()) / (2 * step);
      x[i] = kept;
    }
    const at::Tensor found = leaves[n].grad().defined() ? leaves[n].grad() : torch::zeros_like(leaves[n]);
    const double largest = std::max(1e-3, numeric.abs().max().item<double>());
    worst = std::max(worst, (found.to(torch::kDouble) - numeric).abs().max().item<double>() / largest);
  }
  return worst;
}

}  // namespace sparsight::test
