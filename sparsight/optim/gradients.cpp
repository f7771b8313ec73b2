#include "sparsight/optim/gradients.h"

#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>

namespace sparsight {
namespace {

std::vector<at::Tensor> defined_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  return gradients;
}

}  // namespace

double gradient_norm(const std::vector<at::Tensor>& parameters) {
  at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = defined_gradients(parameters);
  if (gradients.empty()) return 0;
  double squares = 0;
  for (const at::Tensor& norm : at::_foreach_norm(gradients)) {
    const double value = norm.item<double>();
    squares += value * value;
  }
  return std::sqrt(squares);
}

void clip_gradients(const std::vector<at::Tensor>& parameters, double norm, double max_norm) {
  if (norm <= max_norm) return;
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients = defined_gradients(parameters);
  at::_foreach_mul_(gradients, max_norm / norm);
}

}  // namespace sparsight
