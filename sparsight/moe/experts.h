// The interface of a layer's experts. Letters: moe/axes.md; R rows, grouped by expert.
// Call apply_routing() with a routing or forward() with rows; kinds of experts implement compute().
#pragma once

#include <memory>
#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/forward_mode.h"
#include "sparsight/core/random.h"
#include "sparsight/cost/layer_cost.h"
#include "sparsight/engine/experts.h"
#include "sparsight/moe/expert_removal.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// The sizes of a layer's experts.
struct ExpertShape {
  int64_t experts = 0;  // E
  int64_t width = 0;    // D
  int64_t hidden = 0;   // F
  int64_t outputs = 0;  // output width of an expert; 0: D, as in a transformer
  int64_t output_width() const { return outputs > 0 ? outputs : width; }
};

// Mode and random streams of a pass through the experts. The default is evaluation.
struct ExpertContext {
  ForwardMode mode = {};
  StepRandom random = {};
  std::string path = {};  // of the experts, "blocks.3.mlp.experts": names the streams
  at::Tensor image = {};  // [B] int64, as in RoutingContext
};

// The same for rows. Random samples of a row are a function of (seed, step, path, number of the row): neither the
// order of rows, nor splitting the batch, nor recomputation changes them.
struct RowContext {
  ForwardMode mode = {};
  StepRandom random = {};
  std::string path = {};
  at::Tensor number = {};  // [R] int64; undefined: nothing is random
};

class Experts : public torch::nn::Module {
 public:
  // recompute: recompute the experts in the backward pass instead of keeping their activations.
  explicit Experts(bool recompute = false) : recompute_(recompute) {}

  // rows: [R,D]; expert e owns rows offsets[e] .. offsets[e+1] (offsets: [E+1] int64). Returns [R,D], or
  // [R,outputs] if ExpertShape sets them. Experts without rows are not computed and receive a gradient of exactly 0.
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context = {});

  // Whether the experts use random samples (dropout) in a pass of this mode.
  virtual bool is_stochastic(const ForwardMode&) const { return false; }

  // These experts without tensors, in evaluation. Kinds without a packed form stay fp32. Raises Error, saying why,
  // where that is impossible. By default it is.
  virtual std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const;

  // Which tensors belong to which expert, so that some can be removed or merged. By default both are refused.
  virtual ExpertTensors expert_tensors() const;

  // tokens: [N,D]. Returns [N,D]: y_j = sum of gate * expert(x_j) over the kept assignments of token j. By default
  // gathers rows, computes and combines; a kind with a fused kernel overrides it. The row of token j at expert e has
  // the number (token number) * E + e.
  virtual at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing, const ExpertContext& context = {});

  // Cost of all experts of the layer for an image, without gates. By default an estimate, marked as such: parameters
  // are divided evenly among use.experts, and each expert's matrices (parameters with three axes, the first of size E)
  // are linear maps of its rows.
  virtual Cost cost(const ExpertUse& use) const;

 protected:
  // The context of the rows of a routing's kept assignments, with their numbers if the pass is stochastic.
  RowContext row_context(const Routing& routing, const ExpertContext& context) const;

  // What forward() returns.
  virtual at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) = 0;
  bool recompute() const { return recompute_; }

 private:
  bool recompute_;
};

}  // namespace sparsight
