// The cost of layers: the arithmetic behind the cost() of modules, and of layers that occur only in tables of papers.
// Elementwise operations: one for each arithmetic operation and each exp, erf, tanh and square root; so 1 for adding a
// bias or a residual, 7 per normalised number, 4 per number of a softmax (finding the maximum is not counted), 5 for
// GELU. Top-k selection and moving rows are not counted. Letters: moe/axes.md.
#pragma once

#include <cstdint>

#include "sparsight/cost/cost.h"

namespace sparsight {

// Operations per number.
inline constexpr int64_t kNormOperations = 7;     // mean, subtract, square, sum, normalise, gain, bias
inline constexpr int64_t kSoftmaxOperations = 4;  // subtract, exp, sum, divide; a sigmoid counts the same
inline constexpr int64_t kGeluOperations = 5;     // divide, erf, add, two multiplications
inline constexpr int64_t kNoiseOperations = 2;    // scale, add

// Per row of `inputs` numbers.
Cost linear_cost(int64_t inputs, int64_t outputs, bool bias);

// Height and width of a feature map.
struct MapSize {
  int64_t height = 0, width = 0;
  int64_t positions() const { return checked_product(height, width); }
};

// A square convolution, per position of its output map; zero padding counts as numbers.
struct ConvShape {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3;
  bool bias = false;
};
Cost conv_cost(const ConvShape& conv);

// A normalisation with scale and shift, per row of `width` numbers.
Cost norm_cost(int64_t width);

// Multi-head self-attention, per image: projections, queries times keys, attention weights times values. `queries`: the
// tokens whose outputs are computed.
struct AttentionShape {
  int64_t width = 0;  // D
  int64_t heads = 1;  // H
  bool qkv_bias = true;
};
Cost attention_cost(const AttentionShape& attention, int64_t tokens, int64_t queries);
inline Cost attention_cost(const AttentionShape& attention, int64_t tokens) {
  return attention_cost(attention, tokens, tokens);
}

// An LSTM layer without biases, per token: products and parameters only. With `projection` > 0 its state is projected
// to that width, which is then also the recurrent input (Sak et al. 2014).
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

// Experts of which a token uses `chosen`, per token: products of those, parameters of all. `expert`: the cost of one
// expert on one row.
Cost experts_cost(const Cost& expert, int64_t experts, int64_t chosen);

// The work of a layer's experts for an image.
struct ExpertUse {
  int64_t experts = 0;  // E
  int64_t tokens = 0;   // S
  double rows = 0;      // that they compute in total: a mean over images if buffers are shared
  double active = 0;    // experts that one token uses, on average
  int64_t touched = 0;  // maximum number of experts whose weights are read
};
Cost experts_cost(const Cost& expert, const ExpertUse& use);

}  // namespace sparsight
