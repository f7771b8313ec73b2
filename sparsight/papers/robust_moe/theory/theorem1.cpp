#include "sparsight/papers/robust_moe/theory/theorem1.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_matrix_norm.h>
#include <ATen/ops/linalg_svd.h>

#include "sparsight/core/error.h"

namespace sparsight::robust_moe {
namespace {

constexpr double kTie = 1e-12;       // projections that differ by less are equal
constexpr double kViolation = 1e-9;  // relative

double spectral_norm(const at::Tensor& matrix) {
  return matrix.numel() == 0 ? 0 : at::linalg_matrix_norm(matrix, 2).item<double>();
}

at::Tensor projected(const at::Tensor& basis, const at::Tensor& vector) {
  return basis.matmul(basis.t().matmul(vector));
}

double positive_squared(double value) { return value > 0 ? value * value : 0; }

// The largest |U_i U_i^T w* - w_i*|, and all of them.
std::vector<double> weight_gaps(const FixedRouting& fit, const ExpertSubspaces& subspaces) {
  std::vector<double> gaps;
  for (size_t i = 0; i < fit.experts.size(); ++i)
    gaps.push_back((projected(subspaces.bases[i], fit.weights) - fit.expert_weights[i]).norm().item<double>());
  return gaps;
}

Theorem1 bound_with(const RoutedData& data, const FixedRouting& fit, const ExpertSubspaces& subspaces, double first) {
  Theorem1 found;
  found.epsilon_1 = first;
  found.epsilon_2 = epsilon_2(fit);
  found.products = data.all_inputs().t().matmul(data.all_targets()).norm().item<double>();
  std::vector<double> own;
  double all = 0;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    own.push_back(data.inputs[i].t().matmul(data.targets[i]).norm().item<double>());
    all += own.back();
  }
  const std::vector<double> norms = fit.expert_norms(), gaps = weight_gaps(fit, subspaces);
  for (size_t i = 0; i < norms.size(); ++i) {
    found.terms.push_back(norms[i] - found.epsilon_1 * found.products - found.epsilon_2 * (all - own[i]));
    found.right += positive_squared(found.terms[i]);
    found.companion += positive_squared(norms[i] - gaps[i]);
  }
  found.left = fit.norm() * fit.norm();
  return found;
}

}  // namespace

ExpertSubspaces eigenvector_subspaces(const FixedRouting& fit) {
  ExpertSubspaces subspaces;
  std::vector<std::vector<at::Tensor>> columns(fit.experts.size());
  for (int64_t k = 0; k < fit.dense.basis.size(1); ++k) {
    const at::Tensor eigenvector = fit.dense.basis.select(1, k);
    size_t owner = 0;
    double best = -1;
    for (size_t i = 0; i < fit.experts.size(); ++i) {
      const double length = fit.experts[i].basis.t().matmul(eigenvector).norm().item<double>();
      if (length > best + kTie) best = length, owner = i;
    }
    subspaces.owners.push_back(static_cast<int64_t>(owner));
    columns[owner].push_back(eigenvector.unsqueeze(1));
  }
  const at::Tensor none = fit.dense.basis.new_zeros({fit.dense.basis.size(0), 0});
  for (const auto& own : columns) subspaces.bases.push_back(own.empty() ? none : at::cat(own, 1));
  return subspaces;
}

ExpertSubspaces orthogonalised_subspaces(const FixedRouting& fit) {
  ExpertSubspaces subspaces;
  at::Tensor before = fit.dense.basis.new_zeros({fit.dense.basis.size(0), 0});
  for (const GramInverse& expert : fit.experts) {
    at::Tensor rest = expert.basis;
    for (int round = 0; round < 2; ++round) rest = rest - projected(before, rest);  // twice is orthogonal to rounding
    if (rest.size(1) > 0) {
      const auto [left, singular, right] = at::linalg_svd(rest, false);
      rest = left.narrow(1, 0, (singular.square() > kEigenvalueTolerance).sum().item<int64_t>());
    }
    subspaces.bases.push_back(rest);
    before = at::cat({before, rest}, 1);
  }
  return subspaces;
}

double epsilon_1(const FixedRouting& fit, const ExpertSubspaces& subspaces) {
  SPARSIGHT_CHECK(subspaces.bases.size() == fit.experts.size());
  double largest = 0;
  for (size_t i = 0; i < fit.experts.size(); ++i)
    largest = std::max(largest, spectral_norm(projected(subspaces.bases[i], fit.dense.matrix) - fit.experts[i].matrix));
  return largest;
}

double epsilon_2(const FixedRouting& fit) {
  double largest = 0;
  for (size_t i = 0; i < fit.experts.size(); ++i)
    for (size_t j = 0; j < fit.experts.size(); ++j)
      // |A P_j| = |A V_j| for an orthonormal basis V_j of the span.
      if (i != j) largest = std::max(largest, spectral_norm(fit.experts[i].matrix.matmul(fit.experts[j].basis)));
  return largest;
}

ExpertSubspaces best_subspaces(const FixedRouting& fit) {
  const ExpertSubspaces papers = eigenvector_subspaces(fit), others = orthogonalised_subspaces(fit);
  return epsilon_1(fit, others) < epsilon_1(fit, papers) ? others : papers;
}

bool Theorem1::violated() const { return right - left > kViolation * right; }

Theorem1 theorem1(const RoutedData& data, const FixedRouting& fit, const ExpertSubspaces& subspaces) {
  return bound_with(data, fit, subspaces, epsilon_1(fit, subspaces));
}

Theorem1 printed_theorem1(const RoutedData& data, const FixedRouting& fit, const ExpertSubspaces& subspaces) {
  const std::vector<double> gaps = weight_gaps(fit, subspaces);
  return bound_with(data, fit, subspaces, *std::max_element(gaps.begin(), gaps.end()));
}

}  // namespace sparsight::robust_moe
