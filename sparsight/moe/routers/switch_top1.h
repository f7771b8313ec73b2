// The router of Switch Transformers: softmax over all experts, top-1, its probability as the gate.
// Fedus et al. 2021, "Switch Transformers", sections 2.1 and 2.4. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct SwitchTop1Options : FixedChoiceOptions, EvalNoiseOptions {
  SwitchTop1Options() : FixedChoiceOptions(1) {}
  double jitter = 0.01;
  void declare(OptionSet& set);
};

// tokens * U(1 - jitter, 1 + jitter), element by element. tokens, uniform: [N,D]; uniform: samples of U[0,1).
at::Tensor jitter_tokens(const at::Tensor& tokens, const at::Tensor& uniform, double jitter);

// The router's decision for given logits. clean: [N,E] differentiable. k: above 1 only in evaluation.
Routing route_switch_top1(const at::Tensor& clean, int64_t k = 1);

class SwitchTop1Router : public Router, public Initialized {
 public:
  SwitchTop1Router(const SwitchTop1Options& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"jitter"}; }
  bool has_noise() const override { return false; }  // none on the logits
  // N(0, 0.1 / D), section 2.4.
  // Differs from the paper: not truncated at two standard deviations.
  void initialize(const InitRandom& random) override;

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::choices); }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  SwitchTop1Options options_;
};

}  // namespace sparsight
