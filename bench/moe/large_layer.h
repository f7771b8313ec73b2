// A whole MoE layer, router and losses included, to time. Letters: sparsight/moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/moe/moe_layer.h"

namespace sparsight::bench {

class LargeLayer {
 public:
  // Width kWidth (contenders.h), with the router softmax_topk and V-MoE's losses.
  LargeLayer(int64_t experts, int64_t k, int64_t hidden);

  // Router, experts, combination: the routing of the last pass. Without gradients.
  Routing forward(const at::Tensor& tokens);
  // A forward and a backward pass; gradients are allocated again, as after zero_grad().
  void train_step(const at::Tensor& tokens, const at::Tensor& out_grad);
  double weight_bytes() const;  // of all parameters

 private:
  std::shared_ptr<MoeLayer> layer_;
  uint64_t step_ = 0;
};

}  // namespace sparsight::bench
