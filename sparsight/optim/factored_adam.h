// Adam with a factored second moment and no first moment for matrices: p + q numbers of state for a p x q matrix
// instead of Adam's 2 p q. Shazeer et al. 2017, "Outrageously Large Neural Networks", appendix D; the idea was later
// published as Adafactor (Shazeer and Stern 2018).
#pragma once

#include "sparsight/optim/optimizer.h"

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

// A parameter with at least two axes longer than 1 is a stack of matrices, each factored separately: [p,q] is one,
// [E,p,q] one per expert, a convolution's [p,...] one with p rows. For a matrix with gradient G:
//   R <- beta2 R + (1 - beta2) mean of G² over columns    [p]
//   C <- beta2 C + (1 - beta2) mean of G² over rows       [q]
//   V = R C^T / mean(R) / (1 - beta2^t), or 0 where mean(R) is 0
//   W <- W - lr (G / (sqrt(V) + eps) + decay W)
// All other parameters, and those whose name contains an entry of `full`, use Adam with decoupled decay. The paper does
// not give eps, bias correction and beta2: they are Adam's.
class FactoredAdam : public Optimizer {
 public:
  FactoredAdam(const FactoredAdamOptions& options, std::vector<OptimizedParameter> parameters);

 protected:
  using Optimizer::update;
  void update(const std::vector<size_t>& which, double lr) override;

 private:
  void update_matrices(size_t index, double decay, double lr);
  void update_vector(size_t index, double decay, double lr);

  FactoredAdamOptions options_;
  std::vector<bool> factored_;  // by parameter
  size_t row_, column_, exp_avg_, exp_avg_sq_, steps_;
};

}  // namespace sparsight
