// Soft MoE: every expert slot takes a weighted mean of an image's tokens, every token a weighted mean of the slots'
// outputs. Nothing is selected and nothing is dropped.
// Puigcerver et al. 2024, "From Sparse to Soft Mixtures of Experts", sections 2.1 and 2.3. Letters: moe/axes.md;
// P = E * slots.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct SoftMoeOptions {
  int64_t slots = 1;
  bool normalize = true;
  void declare(OptionSet& set);
};

// logits: [B,S,P] differentiable. valid: [N] bool, or undefined. dispatch is the softmax over an image's tokens,
// combine the one over slots. The caller sets layer and layout.
SoftRouting soft_routing(const at::Tensor& logits, const at::Tensor& valid, int64_t experts);

class SoftMoeRouter : public SoftRouter, public Initialized {
 public:
  SoftMoeRouter(const SoftMoeOptions& options, RouterShape shape);
  SoftRouting mix(const RouterInput& input) override;
  void initialize(const InitRandom& random) override;  // weight N(0, 1/D), scale 1

  at::Tensor weight;  // [P,D]; the paper's Phi is [D,P]
  at::Tensor scale;   // [], undefined without normalize
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return {"mixes tokens into the slots of all experts: none is chosen, and none is unused"};
  }
  RouterCost cost(const TokenLayout& layout) const override;

 private:
  SoftMoeOptions options_;
  int64_t experts_;
};

}  // namespace sparsight
