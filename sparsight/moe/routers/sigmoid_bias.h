// Balance without an auxiliary loss: sigmoid scores, and a bias per expert that affects only selection.
// Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts"; DeepSeek-V3 technical report
// (2024), section 2.1.2, equations 12 to 16. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct SigmoidBiasOptions : ChoiceOptions {
  double scale = 1;
  double rate = 0.001;
  int64_t freeze_after = 0;
  int64_t groups = 1;
  int64_t kept_groups = 1;
  void declare(OptionSet& set);
};

// Limits the groups of a token: experts form `groups` equal groups, of which a token uses the `kept` best; a group's
// score is the sum of its k / kept largest biased scores.
struct GroupLimit {
  int64_t groups = 1;
  int64_t kept = 1;
};

// The router's decision for given logits. clean: [N,E] differentiable; bias: [E] constant. Chosen are the k largest of
// sigmoid(clean) + bias; gates are sigmoid(clean) without the bias, divided by the sum over the chosen, times `scale`.
Routing route_sigmoid_bias(const at::Tensor& clean, const at::Tensor& bias, int64_t k, double scale, GroupLimit limit);

// bias: [E], count: [E]. Returns [E]: bias + rate * sign(mean(count) - count).
at::Tensor balanced_bias(const at::Tensor& bias, const at::Tensor& count, double rate);

class SigmoidBiasRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k or the groups do not match the number of experts.
  SigmoidBiasRouter(const SigmoidBiasOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  bool needs_post_step_update() const override { return true; }
  // One step of balanced_bias over all batches of the step.
  void post_step_update(const std::vector<Routing>& routings) override;
  void initialize(const InitRandom& random) override;  // weight N(0, 0.02²), bias 0

  at::Tensor weight;  // [E,D]
  at::Tensor bias;    // [E] buffer
  at::Tensor steps;   // [] int64 buffer: number of bias updates
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override;
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  SigmoidBiasOptions options_;
};

}  // namespace sparsight
