// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
#pragma once

#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  void declare(OptionSet& set);
};

struct AdamWOptions : AdamOptions {
  AdamWOptions() { weight_decay = 0.05; }
};

class Adam : public Optimizer {
 public:
  // decoupled: weight decay is applied to the parameters directly (AdamW), not added to the gradient (Adam).
  Adam(const AdamOptions& options, bool decoupled, std::vector<OptimizedParameter> parameters);

 protected:
  void update(const std::vector<size_t>& which, double lr) override;
  void update(const std::vector<size_t>& which, const OptimizerStep& options) override;

 private:
  AdamOptions options_;
  bool decoupled_;
  size_t exp_avg_, exp_avg_sq_, steps_;
};

}  // namespace sparsight
