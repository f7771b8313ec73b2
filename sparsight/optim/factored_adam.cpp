#include "sparsight/optim/factored_adam.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace sparsight {

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
    : MatrixOptimizer({options.beta1, options.beta2, options.eps}, options.weight_decay, options.full, std::move(list)),
      options_(options) {
  const auto mean_over = [this](bool columns) {
    return [this, columns](size_t i) {
      if (!is_matrix(i)) return at::Tensor();
      const MatrixStack shape = as_matrices(parameters()[i].value);
      return at::zeros({shape.stack, columns ? shape.rows : shape.columns}, parameters()[i].value.options());
    };
  };
  row_ = add_state("row", mean_over(/*columns=*/true));
  column_ = add_state("column", mean_over(/*columns=*/false));
  add_vector_states();
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
  const double correction = 1 - std::pow(options_.beta2, steps(index));
  // The square roots of the factors are taken first: R C alone can underflow in fp32.
  const at::Tensor row_root = (row / mean).div_(correction).sqrt_().unsqueeze(2);  // [stack,p,1]
  const at::Tensor denominator = (row_root * column.sqrt().unsqueeze(1)).add_(options_.eps);
  value.mul_(1 - lr * decay).sub_((gradient / denominator).view(value.sizes()), lr);
}

}  // namespace sparsight
