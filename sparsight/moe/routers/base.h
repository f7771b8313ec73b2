// Balanced assignment of experts (BASE): while training each token gets one expert by the linear assignment that gives
// all experts the same number of tokens; in evaluation its best expert.
// Lewis et al. 2021, "BASE Layers: Simplifying Training of Large, Sparse Models", section 3. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct BaseOptions : FixedChoiceOptions {
  BaseOptions() : FixedChoiceOptions(1) {}
};

// The decision of training for given scores: no expert gets more than ceil(tokens / E) tokens, and the sum of the
// chosen logits is the largest possible (balanced_assignment.h). The gate is the sigmoid of the chosen logit. clean:
// [N,E] differentiable. valid: [N] bool, or undefined; padding takes no seat.
Routing route_base(const at::Tensor& clean, const at::Tensor& valid);

// The decision of evaluation: the k largest logits.
Routing route_base_greedy(const at::Tensor& clean, int64_t k = 1);

class BaseRouter : public Router, public Initialized {
 public:
  BaseRouter(const BaseOptions& options, RouterShape shape);
  // N(0, 0.1² / D).
  // Differs from the paper: its code samples orthogonal rows of norm 0.1; here that holds only on average.
  void initialize(const InitRandom& random) override;

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  bool mixes_images(const ForwardMode& mode) const override { return mode.choices; }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::gates); }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  BaseOptions options_;
};

}  // namespace sparsight
