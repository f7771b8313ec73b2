// Momentum whose matrices are made orthogonal before each update: Jordan et al. 2024, "Muon: An optimizer for hidden
// layers in neural networks". One state of the parameter's size instead of Adam's two.
#pragma once

#include "sparsight/optim/matrix_optimizer.h"

namespace sparsight {

struct MuonOptions {
  double lr = 2e-2;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0;
  int64_t iterations = 5;
  std::string scale = "shape";
  double vector_lr_factor = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  std::vector<std::string> others{"experts.b", "shared.b",  "head.",     "head_dist.",
                                  "pos_embed", "cls_token", "dist_token"};
  void declare(OptionSet& set);
};

// For each matrix [p,q] of a parameter (matrix_optimizer.h; each expert's is one) with gradient G:
//   M <- momentum M + (1 - momentum) G
//   U = orthogonal(G + momentum (M - G)) with Nesterov momentum, else orthogonal(M)
//   W <- W - lr (s U + decay W), s = sqrt(max(1, p / q)) (scale "shape") or 0.2 sqrt(max(p, q)) ("adamw": updates as
//        large as AdamW's, Liu et al. 2025, arXiv:2502.16982)
// All others use Adam with decoupled decay, with vector_lr_factor times the learning rate.
class Muon : public MatrixOptimizer {
 public:
  Muon(const MuonOptions& options, std::vector<OptimizedParameter> parameters);

 private:
  void update_matrices(size_t index, double decay, double lr) override;

  MuonOptions options_;
  size_t momentum_;
};

// Matrices [...,p,q] with nearly the same singular vectors and singular values of about 1 (0.7 to 1.2 after five
// iterations): X <- a X + (b A + c A A) X with A = X X^T from X = matrices / |matrices|, where a, b, c = 3.4445,
// -4.775, 2.0315. A matrix of zeros stays one.
at::Tensor orthogonalize(const at::Tensor& matrices, int64_t iterations);

}  // namespace sparsight
