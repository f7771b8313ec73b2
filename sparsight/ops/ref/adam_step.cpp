#include "sparsight/ops/ref/adam_step.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace sparsight::ref {

void adam_step(const AdamTensors& p, const AdamStep& step) {
  const at::NoGradGuard no_grad;
  const at::Tensor &value = p.value, &mean = p.exp_avg, &square = p.exp_avg_sq;
  at::Tensor gradient = step.gradient_factor == 1 ? p.gradient : p.gradient * step.gradient_factor;
  if (step.decoupled)
    value.mul_(1 - step.lr * step.weight_decay);
  else if (step.weight_decay != 0)
    gradient = gradient + value * step.weight_decay;
  mean.mul_(step.beta1).add_(gradient, 1 - step.beta1);
  square.mul_(step.beta2).addcmul_(gradient, gradient, 1 - step.beta2);
  const double correction1 = 1 - std::pow(step.beta1, p.updates), correction2 = 1 - std::pow(step.beta2, p.updates);
  const at::Tensor denominator = (square.sqrt() / std::sqrt(correction2)).add_(step.eps);
  value.addcdiv_(mean, denominator, -step.lr / correction1);
  if (p.average.defined() && step.average_share != 0) p.average.lerp_(value, step.average_share);
}

}  // namespace sparsight::ref
