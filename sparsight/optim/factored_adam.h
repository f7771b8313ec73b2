// Adam with a factored second moment and no first moment for matrices: p + q numbers of state for a p x q matrix
// instead of Adam's 2 p q. Shazeer et al. 2017, "Outrageously Large Neural Networks", appendix D; the idea was later
// published as Adafactor (Shazeer and Stern 2018).
#pragma once

#include "sparsight/optim/matrix_optimizer.h"

namespace sparsight {

struct FactoredAdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  std::vector<std::string> full{"experts.b", "shared.b"};
  void declare(OptionSet& set);
};

// For each matrix of a parameter (matrix_optimizer.h) with gradient G:
//   R <- beta2 R + (1 - beta2) mean of G² over columns    [p]
//   C <- beta2 C + (1 - beta2) mean of G² over rows       [q]
//   V = R C^T / mean(R) / (1 - beta2^t), or 0 where mean(R) is 0
//   W <- W - lr (G / (sqrt(V) + eps) + decay W)
// All other parameters, and those whose name contains an entry of `full`, use Adam with decoupled decay. The paper does
// not give eps, bias correction and beta2: they are Adam's.
class FactoredAdam : public MatrixOptimizer {
 public:
  FactoredAdam(const FactoredAdamOptions& options, std::vector<OptimizedParameter> parameters);

 private:
  void update_matrices(size_t index, double decay, double lr) override;

  FactoredAdamOptions options_;
  size_t row_, column_;
};

}  // namespace sparsight
