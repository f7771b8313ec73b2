// Top-p routing: each token takes its best experts until their probabilities sum to p, which is few if the router is
// certain.
// Huang et al. 2024, "Harder Tasks Need More Experts: Dynamic Routing in MoE Models", section 3.2 (equations 3 to 5);
// its dynamic loss (section 3.3) is the loss `entropy`. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct TopPOptions {
  double p = 0.4;
  int64_t max_k = 0;
  void declare(OptionSet& set);
};

// The router's decision for given logits. clean: [N,E] differentiable. Each token takes the fewest experts, by
// decreasing probability, whose probabilities sum to p at least, and `maximum` at most; gates are the probabilities. A
// token always has its first choice. The caller sets layer and layout.
Routing route_top_p(const at::Tensor& clean, double p, int64_t maximum);

class TopPRouter : public Router, public Initialized {
 public:
  // Raises UsageError where max_k is above the number of experts.
  TopPRouter(const TopPOptions& options, RouterShape shape);
  // The weights of section 4.1. Its balance loss (section 3.3) counts all choices.
  std::vector<LossWeight> default_losses() const override { return {{"switch", 0.01, "sum"}, {"entropy", 1e-4}}; }
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]

  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::nothing); }
  RouterCost cost(const TokenLayout& layout) const override;
  void declare(OptionSet& set) override { options_.declare(set); }

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  TopPOptions options_;
};

}  // namespace sparsight
