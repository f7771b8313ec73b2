#include "sparsight/optim/muon.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_matrix_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

at::Tensor orthogonalize(const at::Tensor& matrices, int64_t iterations) {
  constexpr double kA = 3.4445, kB = -4.775, kC = 2.0315, kLeastNorm = 1e-7;
  const bool wide = matrices.size(-2) <= matrices.size(-1);  // the smaller product
  at::Tensor x = wide ? matrices : matrices.transpose(-2, -1);
  x = x / at::linalg_matrix_norm(x, "fro", {-2, -1}, /*keepdim=*/true).clamp_min(kLeastNorm);
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor a = at::matmul(x, x.transpose(-2, -1));
    x = kA * x + at::matmul(kB * a + kC * at::matmul(a, a), x);
  }
  return wide ? x : x.transpose(-2, -1);
}

void MuonOptions::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "base learning rate, scaled by the schedule");
  set.real("momentum", &momentum, {0, 1}, "decay of the gradient's running mean");
  set.flag("nesterov", &nesterov, "whether the mean is taken one step ahead");
  set.real("weight_decay", &weight_decay, {0, 1e6}, "weight decay, decoupled from the gradient");
  set.integer("iterations", &iterations, {1, 100}, "iterations with which a matrix is made orthogonal");
  set.choice("scale", &scale, {"shape", "adamw"},
             "factor of the update: sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)) for updates as large "
             "as AdamW's");
  set.real("vector_lr_factor", &vector_lr_factor, {0, 1e6},
           "factor of the learning rate for all that are not matrices, which AdamW updates");
  set.real("beta1", &beta1, {0, 1}, "decay of their gradient's running mean");
  set.real("beta2", &beta2, {0, 1}, "decay of their squared gradient's running mean");
  set.real("eps", &eps, {0, 1}, "added to their denominator");
  set.strings("others", &others,
              "substrings of the names of parameters that AdamW updates although they are matrices, such as the head");
}

Muon::Muon(const MuonOptions& options, std::vector<OptimizedParameter> list)
    : MatrixOptimizer({options.beta1, options.beta2, options.eps, options.vector_lr_factor}, options.weight_decay,
                      options.others, std::move(list)),
      options_(options) {
  momentum_ = add_state("momentum", [this](size_t i) {
    return is_matrix(i) ? at::zeros_like(parameters()[i].value, at::MemoryFormat::Contiguous) : at::Tensor();
  });
  add_vector_states();
}

void Muon::update_matrices(size_t index, double decay, double lr) {
  at::Tensor value = parameters()[index].value;
  const at::Tensor& gradient = value.grad();
  const at::Tensor mean = state(momentum_, index);
  mean.lerp_(gradient, 1 - options_.momentum);
  const MatrixStack shape = as_matrices(value);
  const at::Tensor direction = options_.nesterov ? gradient.lerp(mean, options_.momentum) : mean;
  const at::Tensor update = orthogonalize(direction.reshape(shape.sizes()), options_.iterations);
  const auto rows = static_cast<double>(shape.rows), columns = static_cast<double>(shape.columns);
  const double scale =
      options_.scale == "shape" ? std::sqrt(std::max(1.0, rows / columns)) : 0.2 * std::sqrt(std::max(rows, columns));
  value.mul_(1 - lr * decay).sub_(update.reshape(value.sizes()), lr * scale);
}

}  // namespace sparsight
