// Noisy top-k gating: noise of learned size on the logits, top-k, then the softmax over the chosen.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", section 2.1,
// equations 3 to 5. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/moe/routers/ties.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct NoisyTopKOptions : ChoiceOptions, TieOptions, EvalNoiseOptions {
  double noise_floor = 0.01;
  bool noise = true;
  void declare(OptionSet& set);
};

// softplus(raw) + floor, the standard deviation of the noise. raw: any shape.
// Differs from the paper: there is a floor, by default Tensor2Tensor's 0.01; without it, set noise_floor = 0.
at::Tensor noise_scale(const at::Tensor& raw, double floor);

// The router's decision for given logits. clean, scale: [N,E] differentiable. epsilon: [N,E] samples of N(0,1), or
// undefined for no noise. tie_draw: TieOptions::draw().
Routing route_noisy_topk(const at::Tensor& clean, const at::Tensor& scale, const at::Tensor& epsilon, int64_t k,
                         const at::Tensor& tie_draw = {});

// A linear router with a second map, unused without `noise`: a standard deviation for each of its `logits`, per token.
Cost with_noise_map(const Cost& map, int64_t logits, bool noise);

class NoisyTopKRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is above the number of experts.
  NoisyTopKRouter(const NoisyTopKOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"noise", kTieSamples}; }
  bool has_noise() const override { return options_.noise; }
  void initialize(const InitRandom& random) override;  // zeros: all logits equal, noise of ln 2 (appendix A)

  at::Tensor weight;        // [E,D]
  at::Tensor noise_weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}, {"noise_weight"}}, KeptRouting::gates);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  NoisyTopKOptions options_;
};

}  // namespace sparsight
