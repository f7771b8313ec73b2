// Experts that are MLPs with one hidden layer (the usual ones) or several. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/expert_parameters.h"
#include "sparsight/moe/experts/moe_mlp.h"

namespace sparsight {

struct MlpExpertsOptions : KindOptions {
  std::string activation = "gelu";
  bool bias = true;
  int64_t depth = 1;
  double dropout = 0;
  void declare(OptionSet& set);
};

// x W1 + b1, activation, ..., W<depth+1> + b<depth+1>: D -> F -> ... -> F -> D. With depth 4 these are the experts of
// MoE-1-Deep (Shazeer et al. 2017, appendix C). With `dropout` each activation is followed by dropout while training
// (0.1 in GMoE's code).
class MlpExperts : public Experts, public Initialized {
 public:
  MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape);
  bool is_stochastic(const ForwardMode& mode) const override { return mode.dropout && dropout_ > 0; }
  at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing,
                           const ExpertContext& context = {}) override;
  void initialize(const InitRandom& random) override;
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  bool is_fused() const;
  DropoutMask hidden_dropout(const RowContext& context) const;  // of one hidden layer
  MoeMlpWeights fused_weights(at::ScalarType type) const;       // of one hidden layer

  WeightInit init_;
  std::vector<ExpertLinear> layers_;
  Activation activation_;
  double dropout_;
};

}  // namespace sparsight
