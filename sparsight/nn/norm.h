// Layer norm and group norm: unlike batch norm, an image's output does not depend on the rest of its batch.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/engine/transformer_block.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/norm_linear.h"

namespace sparsight {

// Over the last axis. The default epsilon is that of most of timm's vision transformers.
class LayerNormImpl : public torch::nn::Module, public Initialized {
 public:
  static constexpr double kEpsilon = 1e-6;

  explicit LayerNormImpl(int64_t width, double epsilon = kEpsilon);
  at::Tensor forward(const at::Tensor& x);             // [...,D] -> [...,D]
  void initialize(const InitRandom& random) override;  // ones and zeros
  Cost cost() const;                                   // per row
  RowNorm row_norm() const;                            // for norm_linear() and norm_mlp()
  double epsilon() const { return epsilon_; }

  at::Tensor weight, bias;  // [D]

 private:
  double epsilon_;
};
TORCH_MODULE(LayerNorm);

// The same without tensors.
engine::Norm packed_norm(const LayerNormImpl& norm);

// Over groups of channels, epsilon 1e-5. channels must be a multiple of groups.
class GroupNormImpl : public torch::nn::Module, public Initialized {
 public:
  static constexpr double kEpsilon = 1e-5;
  GroupNormImpl(int64_t groups, int64_t channels);
  at::Tensor forward(const at::Tensor& x);             // [B,C,H,W] -> [B,C,H,W]
  void initialize(const InitRandom& random) override;  // ones and zeros
  Cost cost() const;                                   // per position of the map
  int64_t groups() const { return groups_; }

  at::Tensor weight, bias;  // [C]

 private:
  int64_t groups_;
};
TORCH_MODULE(GroupNorm);

// Groups of eight channels where eight divides their number, else the largest groups of fewer that divide it.
GroupNorm group_norm_of_eights(int64_t channels);

}  // namespace sparsight
