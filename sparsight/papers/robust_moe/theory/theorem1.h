// Theorem 1 of Puigcerver et al. 2022: a lower bound of the norm of the dense solution by those of the experts'
// solutions, for data that is nearly orthogonal across experts:
//
//   |w*|^2 >= sum_i [ |w_i*| - epsilon_1 |X^T y| - epsilon_2 sum_{j != i} |X_j^T y_j| ]_+^2
//
// Differs from the paper: definitions 1 and 2 as printed do not give this bound. Definition 1 is about vectors, which
// multiplied by |X^T y| have the wrong dimension, and definition 2 is also about z = 0, which forces w_i* = 0. Here
//   epsilon_1 = max_i | U_i U_i^T (X^T X)^+ - (X_i^T X_i)^+ |      (matrices, spectral norm)
//   epsilon_2 = max_{i != j} | (X_i^T X_i)^+ P_j |                 (P_j projects on the span of X_j^T)
// with which the paper's proof works.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/robust_moe/theory/fixed_routing.h"

namespace sparsight::robust_moe {

// Mutually orthogonal subspaces, one per expert: orthonormal bases U_i [D,r_i]. Any such family gives a bound.
struct ExpertSubspaces {
  std::vector<at::Tensor> bases;
  std::vector<int64_t> owners;  // the expert that owns each eigenvector of X^T X, largest eigenvalue first
};

// The paper's: an eigenvector of X^T X belongs to the expert on whose span it has the largest projection, of equal ones
// the first. Where eigenvalues are repeated the eigenvectors are arbitrary, and may mix the experts' spans.
ExpertSubspaces eigenvector_subspaces(const FixedRouting& fit);

// Differs from the paper: the span of each X_i^T without what the experts before it have. No eigenvectors, so repeated
// eigenvalues do no harm. `owners` is empty.
ExpertSubspaces orthogonalised_subspaces(const FixedRouting& fit);

double epsilon_1(const FixedRouting& fit, const ExpertSubspaces& subspaces);
double epsilon_2(const FixedRouting& fit);  // 0 with one expert

// Whichever of the two has the smaller epsilon_1.
ExpertSubspaces best_subspaces(const FixedRouting& fit);

struct Theorem1 {
  double epsilon_1 = 0, epsilon_2 = 0;
  double products = 0;         // |X^T y|
  std::vector<double> terms;   // the brackets, before [.]_+
  double left = 0, right = 0;  // |w*|^2, and the bound
  double companion = 0;        // sum_i [ |w_i*| - |U_i U_i^T w* - w_i*| ]_+^2, between right and left
  bool violated() const;       // right exceeds left by more than rounding
};
Theorem1 theorem1(const RoutedData& data, const FixedRouting& fit, const ExpertSubspaces& subspaces);

// The same with definition 1 as printed, epsilon_1 = max_i | U_i U_i^T w* - w_i* |: not a bound.
Theorem1 printed_theorem1(const RoutedData& data, const FixedRouting& fit, const ExpertSubspaces& subspaces);

}  // namespace sparsight::robust_moe
