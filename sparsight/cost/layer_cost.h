// What layers cost: the arithmetic behind the cost() of modules, and that of layers which only tables of papers have.
// Elementwise operations are counted plainly: one for each arithmetic operation and each exp, erf, tanh and square
// root; 1 for a bias or a residual's addition, 7 for a number that is normalised, 4 for one of a softmax (the largest
// is not sought), 5 for GELU. Choosing the k largest and moving rows count nothing. Letters: moe/axes.md.
#pragma once

#include <cstdint>

#include "sparsight/cost/cost.h"

namespace sparsight {

// Operations for each number.
inline constexpr int64_t kNormOperations = 7;     // mean, subtract, square, sum, normalise, gain, bias
inline constexpr int64_t kSoftmaxOperations = 4;  // subtract, exp, sum, divide; a sigmoid has as many
inline constexpr int64_t kGeluOperations = 5;     // divide, erf, add, two multiplications
inline constexpr int64_t kNoiseOperations = 2;    // scale, add

// Per row of `inputs` numbers.
Cost linear_cost(int64_t inputs, int64_t outputs, bool bias);

// Height and width of a feature map.
struct MapSize {
  int64_t height = 0, width = 0;
  int64_t places() const { return checked_product(height, width); }
};

// A square convolution, per place of the map that it makes; zeros around the map count as numbers.
struct ConvShape {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3;
  bool bias = false;
};
Cost conv_cost(const ConvShape& conv);

// A normalisation with scale and shift, per row of `width` numbers.
Cost norm_cost(int64_t width);

// Multi-head self-attention, per image: projections, queries with keys, weights with values.
struct AttentionShape {
  int64_t width = 0;  // D
  int64_t heads = 1;  // H
  bool qkv_bias = true;
};
Cost attention_cost(const AttentionShape& attention, int64_t tokens);

// An LSTM layer without biases, per token: products and parameters only. With `projection` > 0 its state is projected
// to that width, which is then the recurrent input, too (Sak et al. 2014).
Cost lstm_cost(int64_t inputs, int64_t units, int64_t projection = 0);

// An MLP D -> F -> ... -> F -> O with `depth` hidden layers, per token.
struct MlpShape {
  int64_t width = 0;   // D
  int64_t hidden = 0;  // F
  int64_t depth = 1;
  bool bias = false;
  bool gated = false;                               // SwiGLU: a second first layer of the same shape
  int64_t outputs = 0;                              // O; 0: D
  int64_t activation_operations = kGeluOperations;  // of each hidden number
};
Cost mlp_cost(const MlpShape& mlp);

// A linear router with a softmax (or sigmoids) of its logits, per token: `maps` matrices D x E (2 for noisy top-k: Wg
// and Wn).
Cost router_cost(int64_t width, int64_t experts, int64_t maps = 1);
// Two levels, per token: a primary router over `groups`, and one over the experts of each of the `chosen_groups`.
Cost hierarchical_router_cost(int64_t width, int64_t experts, int64_t groups, int64_t chosen_groups, int64_t maps = 1);

// Experts of which a token uses `chosen`, per token: products of those, parameters of all. `expert`: one of them on a
// row.
Cost experts_cost(const Cost& expert, int64_t experts, int64_t chosen);

// What a layer's experts do for an image.
struct ExpertUse {
  int64_t experts = 0;  // E
  int64_t tokens = 0;   // S
  double rows = 0;      // that they compute, all together: a mean over images where buffers are shared
  double active = 0;    // experts that one token uses, on average
  int64_t touched = 0;  // experts whose weights are read, at most
};
Cost experts_cost(const Cost& expert, const ExpertUse& use);

}  // namespace sparsight
