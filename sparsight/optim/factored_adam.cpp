#include "sparsight/optim/factored_adam.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {
namespace {

// A parameter as `stack` matrices of `rows` x `columns`.
struct MatrixStack {
  int64_t stack = 1, rows = 1, columns = 1;
  std::vector<int64_t> sizes() const { return {stack, rows, columns}; }
};

MatrixStack as_matrices(const at::Tensor& value) {
  if (value.dim() == 3) return {value.size(0), value.size(1), value.size(2)};
  if (value.dim() < 2 || value.numel() == 0) return {1, 1, value.numel()};
  return {1, value.size(0), value.numel() / value.size(0)};
}

bool is_factored(const OptimizedParameter& parameter, const std::vector<std::string>& full) {
  const MatrixStack shape = as_matrices(parameter.value);
  return shape.rows > 1 && shape.columns > 1 && std::none_of(full.begin(), full.end(), [&](const std::string& part) {
           return parameter.name.find(part) != std::string::npos;
         });
}

}  // namespace

void FactoredAdamOptions::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "base learning rate, scaled by the schedule");
  set.real("beta1", &beta1, {0, 1}, "decay of the gradient's running mean, for vectors only: matrices have none");
  set.real("beta2", &beta2, {0, 1}, "decay of the squared gradient's running means");
  set.real("eps", &eps, {0, 1}, "added to the denominator");
  set.real("weight_decay", &weight_decay, {0, 1e6}, "weight decay, decoupled from the gradient");
  set.strings(
      "full", &full,
      "substrings of the names of parameters not to factor, such as the experts' biases, which are stacked vectors");
}

FactoredAdam::FactoredAdam(const FactoredAdamOptions& options, std::vector<OptimizedParameter> list)
    : Optimizer(std::move(list)), options_(options) {
  for (const OptimizedParameter& parameter : parameters()) factored_.push_back(is_factored(parameter, options_.full));
  const auto mean_over = [this](bool columns) {
    return [this, columns](size_t i) {
      if (!factored_[i]) return at::Tensor();
      const MatrixStack shape = as_matrices(parameters()[i].value);
      return at::zeros({shape.stack, columns ? shape.rows : shape.columns}, parameters()[i].value.options());
    };
  };
  const auto unfactored = [this](size_t i) {
    return factored_[i] ? at::Tensor() : at::zeros_like(parameters()[i].value, at::MemoryFormat::Contiguous);
  };
  row_ = add_state("row", mean_over(/*columns=*/true));
  column_ = add_state("column", mean_over(/*columns=*/false));
  exp_avg_ = add_state("exp_avg", unfactored);
  exp_avg_sq_ = add_state("exp_avg_sq", unfactored);
  steps_ = add_state("step", /*scalar=*/true);
}

void FactoredAdam::update(const std::vector<size_t>& which, double lr) {
  const double weight_decay = group_weight_decay(which, options_.weight_decay);
  for (const size_t index : which) {
    *state(steps_, index).data_ptr<float>() += 1;
    if (factored_[index])
      update_matrices(index, weight_decay, lr);
    else
      update_vector(index, weight_decay, lr);
  }
}

void FactoredAdam::update_matrices(size_t index, double decay, double lr) {
  at::Tensor value = parameters()[index].value;
  const at::Tensor gradient = value.grad().reshape(as_matrices(value).sizes());  // [stack,p,q]
  const at::Tensor row = state(row_, index), column = state(column_, index);
  const at::Tensor squared = gradient.square();
  row.mul_(options_.beta2).add_(squared.mean(2), 1 - options_.beta2);
  column.mul_(options_.beta2).add_(squared.mean(1), 1 - options_.beta2);
  // Where a mean is 0 its R is 0, and so is V whatever it is divided by.
  at::Tensor mean = row.mean(1, /*keepdim=*/true);
  mean = mean.masked_fill(mean == 0, 1);
  const double correction = 1 - std::pow(options_.beta2, state(steps_, index).item<double>());
  // The square roots of the factors are taken first: R C alone can underflow in fp32.
  const at::Tensor row_root = (row / mean).div_(correction).sqrt_().unsqueeze(2);  // [stack,p,1]
  const at::Tensor denominator = (row_root * column.sqrt().unsqueeze(1)).add_(options_.eps);
  value.mul_(1 - lr * decay).sub_((gradient / denominator).view(value.sizes()), lr);
}

void FactoredAdam::update_vector(size_t index, double decay, double lr) {
  at::Tensor value = parameters()[index].value;
  const at::Tensor& gradient = value.grad();
  const at::Tensor mean = state(exp_avg_, index), square = state(exp_avg_sq_, index);
  mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
  square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const double steps = state(steps_, index).item<double>();
  const double correction1 = 1 - std::pow(options_.beta1, steps), correction2 = 1 - std::pow(options_.beta2, steps);
  const at::Tensor denominator = (square / correction2).sqrt_().add_(options_.eps);
  value.mul_(1 - lr * decay).addcdiv_(mean, denominator, -lr / correction1);
}

}  // namespace sparsight
