// Expert choice: each expert takes the tokens with the highest scores for it, so that experts are balanced by
// construction and the number of experts per token varies.
// Zhou et al. 2022, "Mixture-of-Experts with Expert Choice Routing", section 3.2. Letters: moe/axes.md; G groups.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct ExpertChoiceOptions {
  double experts_per_token = 2;
  double eval_experts_per_token = 0;
  std::string pool = "batch";
  void declare(OptionSet& set);
};

// Tokens that each expert takes of groups of T tokens: ceil(experts_per_token * T / E), at least 1 and at most T.
// sizes: int64, of any shape. Returns the same shape.
at::Tensor tokens_of_each(const at::Tensor& sizes, int64_t experts, double experts_per_token);

// The router's decision for given logits. clean: [N,E] differentiable. valid: [N] bool, or undefined. Each expert takes
// tokens_of_each of the tokens (without padding) of each of `groups` groups. Gates are the probabilities of the softmax
// over experts.
Routing route_expert_choice(const at::Tensor& clean, const at::Tensor& valid, int64_t groups, double experts_per_token);

// pool = "batch", as published: a token's experts depend on the other images of the batch, in evaluation too.
// pool = "image": they depend on its own image only.
class ExpertChoiceRouter : public Router, public Initialized {
 public:
  // Raises UsageError where experts_per_token is above the number of experts.
  ExpertChoiceRouter(const ExpertChoiceOptions& options, RouterShape shape);
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  bool mixes_images(const ForwardMode&) const override { return options_.pool == "batch"; }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::nothing); }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  ExpertChoiceOptions options_;
};

}  // namespace sparsight
