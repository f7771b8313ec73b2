// The cosine router of GMoE: logits are cosines of a projected token and learned expert directions, over a temperature.
// Li et al. 2023, "Sparse Mixture-of-Experts are Domain Generalizable Learners", section 4.2. Letters:
// moe/axes.md; P width of the projection.
// Differs from the paper: as in the authors' code, the temperature is learned, the projection has a bias, each
// direction is normalised separately, and gates of k > 1 experts are divided by their sum (renormalize "auto").
#pragma once

#include <string>

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/moe/routers/ties.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct CosineOptions : ChoiceOptions, TieOptions, EvalNoiseOptions {
  int64_t width = 256;
  double noise = 1;
  double temperature = 0.5;
  bool learn_temperature = true;
  std::string renormalize = "auto";
  CosineOptions() { k = 1; }
  void declare(OptionSet& set);
};

// tokens: [N,D]; projector: [P,D], bias: [P]; codebook: [P,E], one direction per column; log_scale: []. Returns [N,E]:
// exp(min(log_scale, ln 100)) * cosine. Everything in fp32 (fp64 for fp64 weights), also under autocast. Above the
// bound log_scale gets no gradient.
at::Tensor cosine_logits(const at::Tensor& tokens, const at::Tensor& projector, const at::Tensor& bias,
                         const at::Tensor& codebook, const at::Tensor& log_scale);

class CosineRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is above the number of experts.
  CosineRouter(const CosineOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"noise", kTieSamples}; }
  bool has_noise() const override { return options_.noise > 0; }
  // projector N(0, 0.02²), bias 0, codebook N(0, 0.01²), log_scale ln(1 / temperature)
  void initialize(const InitRandom& random) override;

  at::Tensor projector;       // [P,D]
  at::Tensor projector_bias;  // [P]
  at::Tensor codebook;        // [P,E]
  at::Tensor log_scale;       // []; a buffer where it is not learned
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override;
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  CosineOptions options_;
};

}  // namespace sparsight
