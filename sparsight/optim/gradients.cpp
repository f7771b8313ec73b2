#include "sparsight/optim/gradients.h"

#include <cmath>

#include "sparsight/ops/sum_of_squares.h"

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
  return std::sqrt(sum_of_squares(defined_gradients(parameters)));
}

double clip_factor(double norm, double max_norm) { return norm <= max_norm ? 1 : max_norm / norm; }

}  // namespace sparsight
