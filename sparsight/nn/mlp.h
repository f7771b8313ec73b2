// The two-layer MLP of a transformer block, named as in timm: fc1, activation, fc2.
#pragma once

#include "sparsight/nn/linear.h"
#include "sparsight/ops/activation.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight {

struct MlpOptions {
  int64_t width = 0;   // D
  int64_t hidden = 0;  // F
  Activation activation = Activation::gelu;
};

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const MlpOptions& options);
  at::Tensor forward(const at::Tensor& x);                  // [...,D] -> [...,D]
  at::Tensor forward(const at::Tensor& x, LayerNorm norm);  // of norm(x), which is not kept for the backward pass
  // x + drop(forward(x, norm)), as one operation.
  at::Tensor forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop = {});
  // The same with dropout of the hidden layer after its activation, F columns of each row, where `hidden` is defined;
  // it keeps norm(x) for the backward pass. And with the branch times gamma [D], where that is defined.
  at::Tensor forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop, const DropoutMask& hidden,
                              const at::Tensor& gamma = {});
  Cost cost() const;  // per row

  Linear fc1() const { return fc1_; }
  Linear fc2() const { return fc2_; }
  Activation activation() const { return activation_; }

 private:
  at::Tensor forward(const at::Tensor& x, const DropoutMask& hidden, const at::Tensor& gamma = {});

  Linear fc1_, fc2_;
  Activation activation_;
};
TORCH_MODULE(Mlp);

}  // namespace sparsight
