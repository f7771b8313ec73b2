// An optimiser that updates matrices in a way of its own, and all other parameters as Adam with decoupled decay does.
#pragma once

#include "sparsight/optim/optimizer.h"

namespace sparsight {

// A parameter as `stack` matrices of `rows` x `columns`: [p,q] is one, [E,p,q] one per expert, a convolution's [p,...]
// one with p rows.
struct MatrixStack {
  int64_t stack = 1, rows = 1, columns = 1;
  std::vector<int64_t> sizes() const { return {stack, rows, columns}; }
};
MatrixStack as_matrices(const at::Tensor& value);

// How those other parameters are updated.
struct VectorAdam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double lr_factor = 1;  // multiplies the step's learning rate
};

class MatrixOptimizer : public Optimizer {
 public:
  // Matrices are the parameters with at least two axes longer than 1 whose names contain none of `others`.
  MatrixOptimizer(const VectorAdam& adam, double weight_decay, const std::vector<std::string>& others,
                  std::vector<OptimizedParameter> parameters);
  bool mixes_slices(size_t index) const override;

 protected:
  bool is_matrix(size_t index) const { return matrix_[index]; }
  double steps(size_t index) const { return state(steps_, index).item<double>(); }  // of the parameter, from 1 on
  // To be called by the constructor, after the states of matrices were added.
  void add_vector_states();

  using Optimizer::update;
  void update(const std::vector<size_t>& which, double lr) final;

 private:
  virtual void update_matrices(size_t index, double decay, double lr) = 0;
  void update_vector(size_t index, double decay, double lr);

  VectorAdam adam_;
  double weight_decay_;
  std::vector<bool> matrix_;  // by parameter
  size_t exp_avg_ = 0, exp_avg_sq_ = 0, steps_ = 0;
};

}  // namespace sparsight
