// Dense gating: every expert for every token, weighted by the softmax. The baseline of Shazeer et al. 2017
// (section 2.1, equation 2) and the smooth MoE of the robustness literature. Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct DenseSoftmaxOptions {
  int64_t k = 0;
  int64_t eval_k = 0;
  void declare(OptionSet& set);
};

// The router's decision for given logits. clean: [N,E] differentiable. k: only the k best, with the same gates (in
// evaluation); 0: all.
Routing route_dense_softmax(const at::Tensor& clean, int64_t k = 0);

class DenseSoftmaxRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is neither 0 nor the number of experts, or eval_k above it.
  DenseSoftmaxRouter(const DenseSoftmaxOptions& options, RouterShape shape);
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::choices); }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  DenseSoftmaxOptions options_;
};

}  // namespace sparsight
