// ReLU routing (ReMoE): a token goes to every expert whose logit is above 0, with the logit as its gate; their
// number is controlled by an L1 loss whose coefficient adapts to the sparsity. Fully differentiable.
// Wang et al. 2024, "ReMoE: Fully Differentiable Mixture-of-Experts with ReLU Routing", sections 3.1 to 3.4 (equations
// 4 to 9). Letters: moe/axes.md; k target number of experts per token, l the L1 coefficient.
// Differs from the paper: each layer has its own coefficient, which adapts to its own sparsity; the paper has one for
// all layers, which adapts to their mean, and its loss is the mean over layers.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct ReluOptions {
  double mean_k = 1;
  double coefficient = 1e-8;
  double growth = 1.2;
  bool balance = true;
  void declare(OptionSet& set);
};

// The router's decision for given logits. clean: [N,E] differentiable. gate = relu(logit); a token's choices are its
// experts with a gate above 0, the largest first; it may have none. The caller sets layer and layout.
Routing route_relu(const at::Tensor& clean);

// []: the mean over tokens of sum over experts of f_e * relu(logit_e); f_e = 1, or with `balance` E / (k N) times the
// number of tokens with expert e (constant in the backward pass). 0 where no expert is used.
at::Tensor relu_l1(const Routing& routing, double k, bool balance);

// l: []. Returns []: l * growth^sign(1 - k/E - sparsity), the sparsity being 1 - assignments / (tokens * E).
// Differs from the paper: clamped to 1e6, since l grows without bound if the sparsity cannot be reached.
at::Tensor adapted_coefficient(const at::Tensor& l, double sparsity, double wanted, double growth);

class ReluRouter : public Router, public Initialized {
 public:
  // Raises UsageError where mean_k is above the number of experts.
  ReluRouter(const ReluOptions& options, RouterShape shape);
  std::vector<RouterLoss> own_losses() const override;                        // relu_l1, times the coefficient
  std::vector<RoutingMetric> metrics(const Routing& routing) const override;  // sparsity, l1_coefficient
  bool needs_post_step_update() const override { return options_.coefficient > 0; }
  // One step of adapted_coefficient over all batches of the step.
  void post_step_update(const std::vector<Routing>& routings) override;
  void initialize(const InitRandom& random) override;  // weight N(0, 0.02²), l1_coefficient from the options

  at::Tensor weight;          // [E,D]
  at::Tensor l1_coefficient;  // [] buffer

  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::gates); }
  RouterCost cost(const TokenLayout& layout) const override;
  void declare(OptionSet& set) override { options_.declare(set); }

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  ReluOptions options_;
};

}  // namespace sparsight
