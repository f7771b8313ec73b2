// A two-layer CNN on patches whose hidden filters are divided among experts: pMoE of Chowdhury et al. 2023,
// "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equations
// 1, 5 and 23. The image's patches are the tokens of one MoE layer; each expert outputs one number per patch (two
// classes) or one per class, and the outputs are averaged. What the paper calls
//   joint-training pMoE     router patch_choice with gate "topl_softmax" (equation 4)
//   separate-training pMoE  gate "ones", the router trained first, alone
// are settings of [moe], [router] and [experts]; without [moe] blocks it is the paper's CNN, whose filters see all
// patches. Any other router can take patch_choice's place, also one by which patches choose experts. Letters:
// moe/axes.md; the paper's n is S, its k is E, its m/k is F.
#pragma once

#include "sparsight/models/image_model.h"
#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routers/patch_choice.h"

namespace sparsight {

struct PatchCnnOptions {
  int64_t patch = 0;
  std::string average = "taken";
  void declare(OptionSet& set);
};

// Filters of each of `experts` that divide `all`. Raises UsageError where they do not divide evenly.
int64_t filters_of_each(int64_t all, int64_t experts);
// Filters of each expert, or of the plain CNN.
int64_t patch_cnn_filters(const MoeSpec& moe);
// Side of the patches. Raises UsageError where they do not fit the image.
int64_t patch_side(const PatchCnnOptions& options, const ImageShape& image);

// The modules of a PatchCnn, for code that trains or studies it on patches instead of images.
struct PatchCnnParts {
  PatchChoiceRouter* router = nullptr;  // null: the filters see all patches
  ConvExperts* experts = nullptr;
};

class PatchCnn : public ImageModel {
 public:
  // Raises UsageError where patches do not fit the image.
  PatchCnn(const PatchCnnOptions& options, const ModelContext& context);

  // Raises UsageError unless the router is patch_choice and the experts are conv.
  PatchCnnParts parts();
  // Divisor of the sum over the patches of an image, where an expert takes `taken` of `all`.
  int64_t divisor(int64_t taken, int64_t all) const { return options_.average == "taken" ? taken : all; }
  std::vector<PartCost> cost(const CostOptions& options) const override;

  // The head is fixed and part of the experts: the features are the paper's f, [B,1] for two classes, else [B,K].
  // Logits for two classes are (0, f): their cross-entropy is the paper's logistic loss of f, and class 1 is its label
  // +1.
  at::Tensor classify(const at::Tensor& features) override;
  // moe or filters, [N,O]: the output for each patch.
  std::vector<std::string> tap_names() const override;

 protected:
  CompiledOutputs compile_steps(engine::ProgramBuilder& builder) const override;
  ModelOutput run(const ModelInput& input) override;

 private:
  PatchCnnOptions options_;
  int64_t patch_;
  std::shared_ptr<MoeLayer> moe_;     // null without experts, else filters_ is
  std::shared_ptr<Experts> filters_;  // a single expert that takes all patches
};

}  // namespace sparsight
