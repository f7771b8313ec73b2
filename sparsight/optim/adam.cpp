#include "sparsight/optim/adam.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

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

void Adam::update(const std::vector<size_t>& which, double lr) {
  const std::vector<at::Tensor> steps = states(steps_, which);
  for (const at::Tensor& step : steps) *step.data_ptr<float>() += 1;
  const double weight_decay = weight_decay_of(which, options_.weight_decay);
  const auto fused = [&](auto function) {
    function(values(which), gradients(which), states(exp_avg_, which), states(exp_avg_sq_, which), at::TensorList{},
             steps, lr, options_.beta1, options_.beta2, weight_decay, options_.eps);
  };
  if (decoupled_) {
    fused([](auto&&... arguments) { at::_fused_adamw_(arguments..., /*amsgrad=*/false, /*maximize=*/false); });
  } else {
    fused([](auto&&... arguments) { at::_fused_adam_(arguments..., /*amsgrad=*/false, /*maximize=*/false); });
  }
}

}  // namespace sparsight
