// Strictly balanced gating: while training every expert takes the same number of tokens of the batch, in evaluation the
// tokens above its learned threshold.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", appendix F.
// Letters: moe/axes.md. A token may have any number of experts; with none its output is 0.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/thresholds.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct BalancedBatchwiseOptions : ThresholdOptions {
  int64_t k = 2;
  int64_t eval_k = 0;
  void declare(OptionSet& set);
};

// The training decision: each expert takes its m = k * tokens / E highest scores of the batch, where scores are the
// softmax over all experts. Gates are the softmax over the experts that took the token. clean: [N,E] differentiable.
// threshold: [E], only copied to the routing. valid: [N] bool, or undefined. Raises UsageError where m is not an
// integer.
Routing route_balanced_batchwise(const at::Tensor& clean, const at::Tensor& threshold, int64_t k,
                                 const at::Tensor& valid);

// The decision of evaluation, which needs no batch: each expert takes the tokens whose score exceeds its threshold.
Routing route_above_threshold(const at::Tensor& clean, const at::Tensor& threshold, const at::Tensor& valid);

// The other decision of evaluation: each token's k best experts, with gates as above. threshold: only copied to the
// routing.
Routing route_best_experts(const at::Tensor& clean, const at::Tensor& threshold, int64_t k);

class BalancedBatchwiseRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k or eval_k is above the number of experts.
  BalancedBatchwiseRouter(const BalancedBatchwiseOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  bool needs_post_step_update() const override { return true; }
  // One step of moved_threshold over all batches of the step.
  void post_step_update(const std::vector<Routing>& routings) override;
  // weight N(0, 0.01²): equal scores would give all experts the same tokens. threshold 1/E.
  void initialize(const InitRandom& random) override;

  at::Tensor weight;     // [E,D]
  at::Tensor threshold;  // [E] buffer
  at::Tensor steps;      // [] int64 buffer: number of threshold updates
  void declare(OptionSet& set) override { options_.declare(set); }
  bool mixes_images(const ForwardMode& mode) const override { return mode.choices; }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}, {"threshold"}}, options_.eval_k > 0 ? KeptRouting::gates : KeptRouting::nothing);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  BalancedBatchwiseOptions options_;
};

}  // namespace sparsight
