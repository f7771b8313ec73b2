// The router of V-MoE: softmax over all experts, then top-k; the gate is the probability itself.
// Riquelme et al. 2021, "Scaling Vision with Sparse Mixture of Experts", section 2.2 and appendix A.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/moe/routers/ties.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct SoftmaxTopKOptions : ChoiceOptions, TieOptions, EvalNoiseOptions {
  double noise = 1;
  bool renormalize = false;
  void declare(OptionSet& set);
};

// The router's decision for given logits. clean: [N,E] differentiable. epsilon: [N,E] samples of N(0,1), or undefined
// for no noise. noise_std: factor of the samples. tie_draw: TieOptions::draw(). The caller sets layer and layout.
Routing route_softmax_topk(const at::Tensor& clean, const at::Tensor& epsilon, double noise_std, int64_t k,
                           bool renormalize, const at::Tensor& tie_draw = {});

class SoftmaxTopKRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is above the number of experts.
  SoftmaxTopKRouter(const SoftmaxTopKOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"noise", kTieSamples}; }
  bool has_noise() const override { return options_.noise > 0; }
  void initialize(const InitRandom& random) override;  // N(0, 0.02²)

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}}, options_.renormalize ? KeptRouting::gates : KeptRouting::choices);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  SoftmaxTopKOptions options_;
};

}  // namespace sparsight
