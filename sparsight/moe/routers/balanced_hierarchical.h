// Strictly balanced gating on two levels: while training each group of experts takes the same number of tokens of the
// batch, and each expert of a group the same number of its group's tokens; in evaluation groups and experts take the
// tokens above learned thresholds.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", appendices B
// and F, which do not say how the two combine: here the batchwise mask is applied on each level.
// Letters: moe/axes.md; G groups of E/G experts. Expert j of group i is expert i * E/G + j.
#pragma once

#include <functional>

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/thresholds.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct BalancedHierarchicalOptions : GroupChoiceOptions, ThresholdOptions {
  BalancedHierarchicalOptions() { k_groups = 1; }
  void declare(OptionSet& set);
};

// A group's own router on some tokens ([X] int64): its logits [X,E/G], differentiable.
using GroupLogits = std::function<at::Tensor(int64_t group, const at::Tensor& token)>;

struct TwoLevelThresholds {
  at::Tensor of_groups;   // [G]
  at::Tensor of_experts;  // [E]
};

// Choices per token on average: groups, and experts in each.
struct TwoLevelChoices {
  int64_t groups = 1;
  int64_t experts = 2;
};

// The training decision: each group takes its m = choices.groups * tokens / G highest scores (softmax over groups),
// each of its experts the choices.experts * m / (E/G) highest scores among these (softmax over the group's experts).
// A gate is the group's gate times the expert's, each the softmax over what took the token. primary: [N,G]
// differentiable. valid: [N] bool, or undefined. Raises UsageError where a count is not an integer.
// Routing::groups is the decision about groups; scores are those of the second level, 0 for tokens that a group did not
// take.
Routing route_balanced_hierarchical(const at::Tensor& primary, const GroupLogits& secondary,
                                    const TwoLevelThresholds& thresholds, TwoLevelChoices choices,
                                    const at::Tensor& valid);

// The decision of evaluation, which needs no batch: scores above their threshold on both levels. If
// `best` is not 0 for a level, each token's `best` choices are used there instead.
Routing route_hierarchical_above_threshold(const at::Tensor& primary, const GroupLogits& secondary,
                                           const TwoLevelThresholds& thresholds, const at::Tensor& valid,
                                           TwoLevelChoices best = {0, 0});

class BalancedHierarchicalRouter : public Router, public Initialized {
 public:
  // Raises UsageError where groups do not divide the experts, or there are more choices than groups or experts.
  BalancedHierarchicalRouter(const BalancedHierarchicalOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  bool needs_post_step_update() const override { return true; }
  // One step of moved_threshold on each level, over all batches of the step. Thresholds of experts stay at 0 or
  // above.
  void post_step_update(const std::vector<Routing>& routings) override;
  // Weights N(0, 0.01²): equal scores would give all experts the same tokens. Thresholds 1/G and G/E.
  void initialize(const InitRandom& random) override;

  at::Tensor group_weight;        // [G,D]
  at::Tensor weight;              // [E,D]
  TwoLevelThresholds thresholds;  // buffers "group_threshold" and "threshold"
  at::Tensor steps;               // [] int64 buffer: number of threshold updates
  void declare(OptionSet& set) override { options_.declare(set); }
  bool mixes_images(const ForwardMode& mode) const override { return mode.choices; }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return {"has its experts in groups of equal size"}; }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  BalancedHierarchicalOptions options_;
};

}  // namespace sparsight
