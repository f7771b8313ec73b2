// The interface of a layer's experts. Letters: moe/axes.md; R rows, grouped by expert.
// Who has a routing calls apply_routing(), who has rows forward(); kinds of experts implement compute().
#pragma once

#include <memory>
#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/forward_mode.h"
#include "sparsight/core/random.h"
#include "sparsight/cost/layer_cost.h"
#include "sparsight/moe/routing.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight {

// What a layer's experts are made for.
struct ExpertShape {
  int64_t experts = 0;  // E
  int64_t width = 0;    // D
  int64_t hidden = 0;   // F
  int64_t outputs = 0;  // output width of an expert; 0: D, as in a transformer
  int64_t output_width() const { return outputs > 0 ? outputs : width; }
};

// What a pass does with the experts of a layer. By default: evaluation.
struct ExpertContext {
  ForwardMode mode = {};
  StepRandom random = {};
  std::string path = {};  // of the experts, "blocks.3.mlp.experts": names the streams
  at::Tensor image = {};  // [B] int64, as in RoutingContext
};

// The same for given rows: what a row draws is a function of (seed, step, path, number of the row), so that neither the
// order of the rows, nor how a batch is split, nor a recomputation changes it.
struct RowContext {
  ForwardMode mode = {};
  StepRandom random = {};
  std::string path = {};
  at::Tensor number = {};  // [R] int64; undefined: nothing is drawn
};

class Experts : public torch::nn::Module {
 public:
  // recompute: the backward pass computes the experts again instead of keeping what is between their rows and results.
  explicit Experts(bool recompute = false) : recompute_(recompute) {}

  // rows: [R,D]; expert e owns rows offsets[e] .. offsets[e+1] (offsets: [E+1] int64). Returns [R,D], or
  // [R,outputs] where the shape says so. Experts without rows are not computed and receive a gradient of exactly 0.
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context = {});

  // Whether experts of this kind and these settings draw anything (dropout) in such a pass.
  virtual bool is_stochastic(const ForwardMode&) const { return false; }

  // The same experts for inference alone, with weights of their own, packed and perhaps quantised
  // (ops/packed_experts.h): another module, without parameters, while these stay as they are. Null where this kind
  // cannot.
  virtual std::shared_ptr<Experts> packed(WeightType) const { return nullptr; }

  // tokens: [N,D]. Returns [N,D]: y_j = sum of gate * expert(x_j) over the kept assignments of token j. By default
  // gathers the rows, computes and combines; a kind with a kernel for all three takes over here. The row of token j at
  // expert e has the number (number of the token) * E + e.
  virtual at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing, const ExpertContext& context = {});

  // What all experts of the layer together cost an image, without gates. By default each parameter is shared out evenly
  // among use.experts, and each expert's matrices (of parameters with three axes, the first one E) are linear maps of
  // its rows; the cost then says that it is assumed.
  virtual Cost cost(const ExpertUse& use) const;

 protected:
  // What forward() returns.
  virtual at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) = 0;
  bool recompute() const { return recompute_; }

 private:
  bool recompute_;
};

}  // namespace sparsight
