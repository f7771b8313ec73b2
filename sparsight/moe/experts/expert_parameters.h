// Shared by all kinds of experts: settings, a linear layer per expert, and the dtype they compute in.
// Letters: moe/axes.md.
#pragma once

#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/options.h"
#include "sparsight/cost/layer_cost.h"
#include "sparsight/engine/experts.h"
#include "sparsight/nn/weight_init.h"

namespace sparsight {

// Settings of all kinds, declared after a kind's own.
struct KindOptions {
  bool recompute = false;
  WeightInit weights;
  void declare(OptionSet& set);
};

// The dtype a linear layer would compute in: the autocast dtype if autocast is on, else that of the rows; under an
// autocast that ops/product_type.h takes over, that of the rows too.
at::ScalarType expert_type(const at::Tensor& rows);

// A linear layer per expert, with parameters w<number> [E,in,out] and b<number> [E,out].
struct ExpertLinearOptions {
  int64_t number = 1;
  int64_t experts = 0;  // E
  int64_t in = 0, out = 0;
  bool bias = true;
};

class ExpertLinear {
 public:
  // Registers the parameters in `owner`.
  ExpertLinear(torch::nn::Module& owner, const ExpertLinearOptions& options);

  // rows: [R,in] of the type to compute in; offsets: [E+1]. Returns [R,out]. Differentiable.
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& offsets) const;
  void initialize(const InitRandom& random, const WeightInit& weights);
  Cost cost() const;  // of one expert, per row
  int64_t inputs() const { return options_.in; }
  engine::ExpertLinear compile() const;

  at::Tensor weight;  // [E,in,out]
  at::Tensor bias;    // [E,out], or undefined

 private:
  ExpertLinearOptions options_;
};

// weight: [E,in,out]; bias: [E,out], or undefined.
engine::ExpertLinear expert_linear(const at::Tensor& weight, const at::Tensor& bias);

}  // namespace sparsight
