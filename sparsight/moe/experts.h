// The interface of a layer's experts. Letters: moe/axes.md; R rows, grouped by expert.
// Who has a routing calls apply_routing(), who has rows apply_rows(); kinds of experts implement forward().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/random.h"
#include "sparsight/moe/routing.h"
#include "sparsight/ops/held_experts.h"

namespace sparsight {

// What a layer's experts are made for.
struct ExpertShape {
  int64_t experts = 0;  // E
  int64_t width = 0;    // D
  int64_t hidden = 0;   // F
  int64_t outputs = 0;  // numbers that an expert answers a row with; 0: D, as in every layer of a transformer
  int64_t output_width() const { return outputs > 0 ? outputs : width; }
};

// What the experts of a layer draw with while training (dropout). Without it nothing is drawn.
struct ExpertRandom {
  StepRandom random;
  std::string path;         // of the experts, "blocks.3.mlp.experts": names the streams
  int64_t first_token = 0;  // as in PoolInfo
};

// The same for given rows: what a row draws is a function of (seed, step, path, number of the row), so that neither the
// order of the rows, nor how a batch is split, nor a recomputation changes it.
struct RowDraws {
  StepRandom random;
  std::string path;
  at::Tensor number;  // [R] int64; undefined: nothing is drawn
};

class Experts : public torch::nn::Module {
 public:
  // recompute: the backward pass computes the experts again instead of keeping what is between their rows and results.
  explicit Experts(bool recompute = false) : recompute_(recompute) {}

  // rows: [R,D]; expert e owns rows offsets[e] .. offsets[e+1] (offsets: [E+1] int64). Returns [R,D], or
  // [R,outputs] where the shape says so. Experts without rows are not computed and receive a gradient of exactly 0.
  virtual at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets) = 0;

  // Whether experts of this kind and these settings draw anything while training.
  virtual bool draws() const { return false; }
  // forward() of experts that draw. By default nothing is drawn.
  virtual at::Tensor forward_drawing(const at::Tensor& rows, const at::Tensor& offsets, const RowDraws& draws);

  // forward(), recomputed in the backward pass where the experts are made so.
  at::Tensor apply_rows(const at::Tensor& rows, const at::Tensor& offsets, const RowDraws& draws = {});

  // The same experts for inference alone, with weights of their own, packed and perhaps quantised (ops/held_experts.h):
  // another module, without parameters, while these stay as they are. Null where this kind cannot.
  virtual std::shared_ptr<Experts> packed(WeightType) const { return nullptr; }

  // tokens: [N,D]. Returns [N,D]: y_j = sum of gate * expert(x_j) over the kept assignments of token j. By default
  // gathers the rows, calls forward() and combines; a kind with a kernel for all three takes over here. random: while
  // training; the row of token j at expert e has the number (first_token + j) * E + e.
  virtual at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing,
                                   const std::optional<ExpertRandom>& random = {});

 protected:
  bool recompute() const { return recompute_; }

 private:
  bool recompute_;
};

}  // namespace sparsight
