#include "sparsight/optim/adam.h"

#include "sparsight/ops/adam_step.h"

namespace sparsight {

void AdamOptions::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "base learning rate, scaled by the schedule");
  set.real("beta1", &beta1, {0, 1}, "decay of the gradient's running mean");
  set.real("beta2", &beta2, {0, 1}, "decay of the squared gradient's running mean");
  set.real("eps", &eps, {0, 1}, "added to the denominator");
  set.real("weight_decay", &weight_decay, {0, 1e6}, "weight decay; decoupled from the gradient in adamw");
}

Adam::Adam(const AdamOptions& options, bool decoupled, std::vector<OptimizedParameter> parameters)
    : Optimizer(std::move(parameters)),
      options_(options),
      decoupled_(decoupled),
      exp_avg_(add_state("exp_avg")),
      exp_avg_sq_(add_state("exp_avg_sq")),
      steps_(add_state("step", /*scalar=*/true)) {}

void Adam::update(const std::vector<size_t>& which, const OptimizerStep& options) {
  std::vector<AdamTensors> tensors;
  for (const size_t i : which) {
    const OptimizedParameter& parameter = parameters()[i];
    float& updates = *state(steps_, i).data_ptr<float>();
    updates += 1;
    tensors.push_back({.value = parameter.value,
                       .gradient = parameter.value.grad(),
                       .exp_avg = state(exp_avg_, i),
                       .exp_avg_sq = state(exp_avg_sq_, i),
                       .average = parameter.average,
                       .updates = updates});
  }
  adam_step(tensors, {.lr = options.lr,
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .eps = options_.eps,
                      .weight_decay = group_weight_decay(which, options_.weight_decay),
                      .decoupled = decoupled_,
                      .gradient_factor = options.gradient_factor,
                      .average_share = options.average_share});
}

void Adam::update(const std::vector<size_t>& which, double lr) { update(which, OptimizerStep{.lr = lr}); }

}  // namespace sparsight
