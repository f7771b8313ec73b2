#include "sparsight/optim/matrix_optimizer.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

MatrixStack as_matrices(const at::Tensor& value) {
  if (value.dim() == 3) return {value.size(0), value.size(1), value.size(2)};
  if (value.dim() < 2 || value.numel() == 0) return {1, 1, value.numel()};
  return {1, value.size(0), value.numel() / value.size(0)};
}

MatrixOptimizer::MatrixOptimizer(const VectorAdam& adam, double weight_decay, const std::vector<std::string>& others,
                                 std::vector<OptimizedParameter> list)
    : Optimizer(std::move(list)), adam_(adam), weight_decay_(weight_decay) {
  for (const OptimizedParameter& parameter : parameters()) {
    const MatrixStack shape = as_matrices(parameter.value);
    const auto is_named = [&](const std::string& part) { return parameter.name.find(part) != std::string::npos; };
    matrix_.push_back(shape.rows > 1 && shape.columns > 1 && std::ranges::none_of(others, is_named));
  }
}

// The matrices of a stack, such as those of experts, are updated each by itself.
bool MatrixOptimizer::mixes_slices(size_t index) const {
  return matrix_[index] && parameters()[index].value.dim() != 3;
}

void MatrixOptimizer::add_vector_states() {
  const auto of_vectors = [this](size_t i) {
    return matrix_[i] ? at::Tensor() : at::zeros_like(parameters()[i].value, at::MemoryFormat::Contiguous);
  };
  exp_avg_ = add_state("exp_avg", of_vectors);
  exp_avg_sq_ = add_state("exp_avg_sq", of_vectors);
  steps_ = add_state("step", /*scalar=*/true);
}

void MatrixOptimizer::update(const std::vector<size_t>& which, double lr) {
  const double weight_decay = group_weight_decay(which, weight_decay_);
  for (const size_t index : which) {
    *state(steps_, index).data_ptr<float>() += 1;
    if (matrix_[index])
      update_matrices(index, weight_decay, lr);
    else
      update_vector(index, weight_decay, lr * adam_.lr_factor);
  }
}

void MatrixOptimizer::update_vector(size_t index, double decay, double lr) {
  at::Tensor value = parameters()[index].value;
  const at::Tensor& gradient = value.grad();
  const at::Tensor mean = state(exp_avg_, index), square = state(exp_avg_sq_, index);
  mean.mul_(adam_.beta1).add_(gradient, 1 - adam_.beta1);
  square.mul_(adam_.beta2).addcmul_(gradient, gradient, 1 - adam_.beta2);
  const double correction1 = 1 - std::pow(adam_.beta1, steps(index)),
               correction2 = 1 - std::pow(adam_.beta2, steps(index));
  const at::Tensor denominator = (square / correction2).sqrt_().add_(adam_.eps);
  value.mul_(1 - lr * decay).addcdiv_(mean, denominator, -lr / correction1);
}

}  // namespace sparsight
