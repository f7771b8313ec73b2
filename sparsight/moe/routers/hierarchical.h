// Two levels of noisy top-k gating: a primary router chooses groups of experts, and each group's own router chooses
// among its experts for the group's tokens.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", appendix B.
// Differs from the paper: noise has a minimum standard deviation, as in noisy_topk.h.
// Letters: moe/axes.md; G groups of E/G experts, Kg groups per token. Expert j of group i is expert i * E/G + j.
#pragma once

#include <functional>

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct HierarchicalOptions : GroupChoiceOptions, EvalNoiseOptions {
  double noise_floor = 0.01;
  bool noise = true;
  void declare(OptionSet& set);
};

// The arguments of route_noisy_topk for one router; scale and epsilon are undefined without noise.
struct NoisyLogits {
  at::Tensor clean;    // differentiable
  at::Tensor scale;    // differentiable
  at::Tensor epsilon;  // samples of N(0,1)
};

// The secondary router of a group, on some tokens ([X] int64): its logits [X,E/G].
using SecondaryLogits = std::function<NoisyLogits(int64_t group, const at::Tensor& token)>;

// The router's decision for given logits. primary: [N,G]. valid: [N] bool, or undefined. Each token gets k_groups * k
// experts, gate = primary gate * secondary gate, by decreasing gate. The importance loss then is the hierarchical one;
// smooth_load is Load_H, with rows of 0 for groups that no token chose and with or without the gradient through the
// thresholds (losses/load.h). Scores are products of the two dense softmaxes,
// 0 in groups that the token did not choose. Routing::groups is the decision about groups.
Routing route_hierarchical(const NoisyLogits& primary, const SecondaryLogits& secondary, int64_t experts,
                           int64_t k_groups, int64_t k, const at::Tensor& valid, bool threshold_gradient = true);

class HierarchicalRouter : public Router, public Initialized {
 public:
  // Raises UsageError where groups do not divide the experts, or there are more choices than groups or experts.
  HierarchicalRouter(const HierarchicalOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"noise", "group_noise"}; }
  bool has_noise() const override { return options_.noise; }
  void initialize(const InitRandom& random) override;  // zeros (appendix A)

  at::Tensor group_weight;        // [G,D]
  at::Tensor group_noise_weight;  // [G,D]
  at::Tensor weight;              // [E,D]
  at::Tensor noise_weight;        // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return {"has its experts in groups of equal size"}; }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  HierarchicalOptions options_;
};

}  // namespace sparsight
