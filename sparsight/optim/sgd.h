// Stochastic gradient descent with (Nesterov) momentum.
#pragma once

#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct SgdOptions {
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = true;
  double weight_decay = 0;
  void declare(OptionSet& set);
};

// v <- momentum * v + g + decay * p;  p <- p - lr * (g + decay * p + momentum * v) with Nesterov, p - lr * v without.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdOptions& options, std::vector<OptimizedParameter> parameters);

 protected:
  using Optimizer::update;
  void update(const std::vector<size_t>& which, double lr) override;

 private:
  SgdOptions options_;
  size_t momentum_;
};

}  // namespace sparsight
