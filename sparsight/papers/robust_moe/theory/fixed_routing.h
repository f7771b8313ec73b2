// Linear experts under a fixed routing, against one dense linear model, of Puigcerver et al. 2022 (section 3.2): the
// solutions of least squares with the smallest norm. The Lipschitz constant of x -> <w,x> is |w|.
// Letters: E experts, N_i samples of expert i, D width, r rank. Everything is float64.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight::robust_moe {

// What each expert is fitted to.
struct RoutedData {
  std::vector<at::Tensor> inputs;   // X_i [N_i,D]
  std::vector<at::Tensor> targets;  // y_i [N_i]
  at::Tensor all_inputs() const;    // X [N,D]
  at::Tensor all_targets() const;   // y [N]
  int64_t experts() const { return static_cast<int64_t>(inputs.size()); }
};

// The pseudo-inverse of a Gram matrix X^T X. Differs from the paper: it writes the inverse, and says that it means
// this.
struct GramInverse {
  at::Tensor matrix;       // (X^T X)^+ [D,D]
  at::Tensor basis;        // [D,r]: eigenvectors of X^T X, an orthonormal basis of the span of X^T
  at::Tensor eigenvalues;  // [r], descending
};
// Eigenvalues up to `zero` count as 0.
GramInverse gram_inverse(const at::Tensor& inputs, double zero);

// Relative to the largest eigenvalue of X^T X.
inline constexpr double kEigenvalueTolerance = 1e-10;

struct FixedRouting {
  double zero = 0;  // the same for the dense model and all experts, so that none sees a direction that others ignore
  GramInverse dense;
  std::vector<GramInverse> experts;
  at::Tensor weights;                      // w* [D]
  std::vector<at::Tensor> expert_weights;  // w_i* [D]
  std::vector<double> expert_norms() const;
  double norm() const;  // |w*|
};
// Raises UsageError unless inputs and targets fit together, are float64 and finite.
FixedRouting fit_fixed_routing(const RoutedData& data, double tolerance = kEigenvalueTolerance);

// Identities of the normal equations: the largest entry of each difference, relative to the largest entry.
struct RoutingIdentities {
  double gram = 0;      // X^T X = sum_i X_i^T X_i
  double products = 0;  // X^T y = sum_i X_i^T y_i
  double weights = 0;   // w* = (X^T X)^+ sum_i X_i^T X_i w_i*
};
RoutingIdentities check_identities(const RoutedData& data, const FixedRouting& fit);

// Sizes of the experts' weights relative to the dense model's.
struct NormRatios {
  double rms = 0, largest = 0;  // of |w_i*| / |w*|
};
NormRatios norm_ratios(const FixedRouting& fit);

}  // namespace sparsight::robust_moe
