// Dense gating: every expert for every token, weighted by the softmax. The baseline of Shazeer et al. 2017
// (section 2.1, equation 2) and the smooth MoE of the robustness literature. Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct DenseSoftmaxOptions {
  void declare(OptionSet&) {}
};

// The router's decision for given logits. clean: [N,E] differentiable.
Routing route_dense_softmax(const at::Tensor& clean);

class DenseSoftmaxRouter : public Router, public Initialized {
 public:
  DenseSoftmaxRouter(const DenseSoftmaxOptions& options, RouterShape shape);
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]

 protected:
  Routing choose(const RouterInput& input) override;
};

}  // namespace sparsight
