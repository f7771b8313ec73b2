// Patch-level routing (pMoE): each expert takes its l best patches of each image.
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", section 3, equations 1 to 4. Letters: moe/axes.md. The paper's k, n, l are E, S and `patches`; its
// factor 1/l is part of the model, which averages over patches, not of the gate.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct PatchChoiceOptions {
  int64_t patches = 6;
  int64_t eval_patches = 0;
  std::string gate = "topl_softmax";
  double init_std = 1e-4;
  void declare(OptionSet& set);
};

// Raises UsageError if an expert takes more patches than the `tokens` of an image.
void check_patches(const PatchChoiceOptions& options, bool training, int64_t tokens);

// The router's decision for given logits of whole images. clean: [N,E] differentiable. valid: [N] bool, or undefined;
// an image with fewer tokens than `patches` gives all it has. gate:
//   "topl_softmax"  softmax over the patches that the expert took (equation 4); sums to 1
//   "softmax_topl"  softmax over all patches of the image, at the patches that the expert took (the paper's code for
//                   networks with a WRN trunk): sums to less than 1, and patches not taken get gradients too
//   "ones"          1 (separately trained routers, equation 3)
// Scores are the softmax over all patches of the image.
Routing route_patch_choice(const at::Tensor& clean, const at::Tensor& valid, int64_t images,
                           const PatchChoiceOptions& options);

class PatchChoiceRouter : public Router, public Initialized {
 public:
  PatchChoiceRouter(const PatchChoiceOptions& options, RouterShape shape);
  void initialize(const InitRandom& random) override;  // N(0, init_std²)
  const PatchChoiceOptions& options() const { return options_; }

  at::Tensor weight;  // [E,D]
  void declare(OptionSet& set) override { options_.declare(set); }
  std::unique_ptr<engine::Router> compile() const override;
  RouterRemoval expert_removal() const override { return removable({{"weight"}}, KeptRouting::gates); }
  RouterCost cost(const TokenLayout& layout) const override;

 protected:
  // Raises UsageError where check_patches does.
  Routing choose(const RouterInput& input) override;

 private:
  PatchChoiceOptions options_;
};

}  // namespace sparsight
