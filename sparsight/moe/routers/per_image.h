// One routing decision for a whole image: all its tokens go to the same experts with the same gates, so that only K
// experts of the layer are loaded for an image.
// Daxberger et al. 2023, "Mobile V-MoEs: Scaling Down Vision Transformers via Sparse Mixture-of-Experts", section 3:
// a single router decides for all MoE layers of the model (models/shared_router.h). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/router.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/eval_noise.h"
#include "sparsight/moe/routers/ties.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct PerImageOptions : ChoiceOptions, TieOptions, EvalNoiseOptions {
  std::string input = "auto";
  std::string norm = "layer_norm";
  double noise = 0;
  bool renormalize = false;
  bool teacher_forced = false;
  bool task_gradient = true;
  bool backbone_gradient = true;
  PerImageOptions() { k = 1; }
  void declare(OptionSet& set);
};

// The router's input for each image. tokens: [N,D]. Returns [B,D] in fp32 (fp64 for fp64 tokens): the first token
// ("class_token"), the mean of all tokens ("mean_all") or of those after the prefix ("mean_patches"), without padding.
// "auto": the class token if there is a prefix, else the mean. Raises UsageError for "class_token" without a class
// token.
at::Tensor image_vectors(const at::Tensor& tokens, const TokenLayout& layout, const at::Tensor& valid,
                         const std::string& input);

// A routing of B images as a routing of their N = B * per_image tokens: all is repeated for each token.
Routing spread_over_tokens(const Routing& of_images, int64_t per_image);

// expert: [B] int64. The routing with these choices in place of its own; the gate is their score.
Routing with_forced_choice(Routing of_images, const at::Tensor& expert, bool renormalize);

class PerImageRouter : public Router, public Initialized {
 public:
  // Raises UsageError where k is above the number of experts.
  PerImageRouter(const PerImageOptions& options, RouterShape shape);
  std::vector<LossWeight> default_losses() const override;
  std::vector<std::string> random_purposes() const override { return {"noise", kTieSamples}; }
  bool has_noise() const override { return options_.noise > 0; }
  bool decides_for_model() const override { return true; }
  bool needs_target() const override { return options_.teacher_forced; }
  void initialize(const InitRandom& random) override;  // weight N(0, 0.02²)

  at::Tensor weight;       // [E,D]
  at::Tensor norm_weight;  // [D], undefined unless norm = "affine"
  at::Tensor norm_bias;    // [D], likewise
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override {
    return removable({{"weight"}}, options_.renormalize ? KeptRouting::gates : KeptRouting::choices);
  }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  Routing choose(const RouterInput& input) override;

 private:
  PerImageOptions options_;
};

}  // namespace sparsight
