// Experts that are small CNNs on patches: convolution, activation, pooling over positions, linear layer. With a kernel
// of the size of the patch and fixed output weights this is the expert of pMoE (Chowdhury et al. 2023, equation
// 1, with gates and 1/l left to the layer). Letters: moe/axes.md; F filters.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/expert_parameters.h"
#include "sparsight/moe/experts/patch_conv.h"
#include "sparsight/ops/activation.h"

namespace sparsight {

struct ConvExpertsOptions : KindOptions {
  int64_t channels = 0;
  int64_t kernel = 0;
  int64_t padding = 0;
  int64_t stride = 1;
  std::string activation = "relu";
  std::string pool = "sum";
  bool bias = false;
  std::string output = "trained";
  void declare(OptionSet& set);
  // Raises UsageError where the kernel is larger than the padded patch.
  PatchKernel kernel_for(const PatchShape& patch) const;
};

// A row is a square patch: channels x side x side, flattened channel by channel.
class ConvExperts : public Experts, public Initialized {
 public:
  // Raises UsageError where the width is not that of a square patch with `channels` channels, or the kernel is too
  // large.
  ConvExperts(const ConvExpertsOptions& options, const ExpertShape& shape);
  // Trained weights as the settings say, fixed output weights N(0, 1), as in pMoE, or signs.
  void initialize(const InitRandom& random) override;
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

  const PatchShape& patch() const { return patch_; }
  const ConvExpertsOptions& options() const { return options_; }

  // w1 [E,P,F], b1 [E,F]: the filters, P = channels * kernel². w2 [E,F,D]: the output layer, a buffer where it is not
  // trained. b1 is undefined without a bias; the output layer has none.
  at::Tensor w1, b1, w2;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  void set_signs();

  ConvExpertsOptions options_;
  PatchShape patch_;
  PatchKernel kernel_;
  Activation activation_;
};

}  // namespace sparsight
