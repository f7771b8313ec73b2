// The experts of WRN-pMoE: batch norm, ReLU and a convolution, each expert with its own, on patches of a feature map
// (Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", figure 18 and the authors' code). The output channels are divided among the experts: expert e
// writes channels e*F .. (e+1)*F-1 of the patch. Letters: moe/axes.md; F = output channels / E, [moe] hidden is
// ignored; P = channels * kernel².
//
// Two paths, with different results:
//   gathered  only patches taken by an expert are convolved, each with zero padding. Patches that an expert did not
//             take are 0 in its channels, and are not in its batch norm.
//   dense     as in the authors' code: the whole map times the gate of each patch (0 where it was not taken) goes
//             through batch norm, ReLU and convolution. Kernels cross the borders of patches, a patch that was not
//             taken becomes the batch norm of 0, and no computation is saved.
//
// In training a row's output depends on the other rows of its expert. There is no `recompute`: running batch norm twice
// would update its running averages twice.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/patch_conv.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/weight_init.h"
#include "sparsight/ops/activation.h"

namespace sparsight {

struct NormConvExpertsOptions {
  int64_t channels = 0;
  int64_t kernel = 3;
  std::string path = "gathered";
  std::string gate = "input";
  std::string activation = "relu";
  double epsilon = 1e-3;
  double momentum = 0.99;
  bool debias = true;
  WeightInit weights{.init = "xavier_uniform"};  // as in the paper's code
  void declare(OptionSet& set);
  // F. Raises UsageError where the widths are not those of square patches, E does not divide the output channels, or
  // the settings contradict each other.
  int64_t filters_for(const ExpertShape& shape) const;
};

// A row is a square patch: channels x side x side, flattened channel by channel; so is its output, of E*F channels.
class NormConvExperts : public Experts, public Initialized {
 public:
  // Raises UsageError where filters_for() does.
  NormConvExperts(const NormConvExpertsOptions& options, const ExpertShape& shape);
  // Raises Error for path "dense" where tokens are not all the patches of a grid.
  at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing,
                           const ExpertContext& context = {}) override;
  // Weights as the settings say; batch norm 1 and 0.
  void initialize(const InitRandom& random) override;
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

  // The convolution: w1 [E,P,F], b1 [E,F]. The batch norm: parameters norm_weight, norm_bias and buffers running_mean,
  // running_var, each [E,C], and num_batches_tracked [E] int64.
  at::Tensor w1, b1, norm_weight, norm_bias, running_mean, running_var, batches;

 protected:
  // The gathered path, with gates of 1: 0 in the channels of other experts.
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  at::Tensor normalised(const at::Tensor& maps, int64_t expert, const ForwardMode& mode);  // [B,C,...], the same
  at::Tensor outputs(const at::Tensor& rows, const at::Tensor& offsets, const ForwardMode& mode);  // [R,D] -> [R,F*L]
  at::Tensor scattered(const at::Tensor& outputs, const at::Tensor& slot, int64_t tokens) const;   // -> [N,E*F*L]
  at::Tensor gathered(const at::Tensor& tokens, const Routing& routing, const ForwardMode& mode);
  at::Tensor dense(const at::Tensor& tokens, const Routing& routing, const ForwardMode& mode);

  NormConvExpertsOptions options_;
  PatchShape patch_;
  Activation activation_;
  int64_t experts_, filters_;  // E, F
};

}  // namespace sparsight
