// Experts that are two-layer perceptrons: the usual ones. Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/moe_mlp.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct MlpExpertsOptions {
  bool recompute = false;
  void declare(OptionSet& set) {  // shape and activation come from [moe]
    set.flag("recompute", &recompute,
             "compute the hidden layer again in the backward pass instead of keeping it (less memory, slower)");
  }
};

class MlpExperts : public Experts, public Initialized {
 public:
  MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape);
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets) override;
  at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing) override;
  void initialize(const InitRandom& random) override;  // weights N(0, 0.02²), biases 0

  MoeMlpWeights weights;  // w1 [E,D,F], b1 [E,F], w2 [E,F,D], b2 [E,D]

 private:
  MoeMlpWeights weights_as(at::ScalarType type) const;
  Activation activation_;
  bool recompute_;
};

}  // namespace sparsight
