// What layers cost: multiply-adds of a forward pass and numbers of parameters, by arithmetic alone. Counted are matrix
// products and convolutions, as in Shazeer et al. 2017 ("ops/timestep"); activations, norms, softmax, routing and
// biases' additions are not. Letters: moe/axes.md.
#pragma once

#include <cstdint>

namespace sparsight {

struct Cost {
  int64_t multiply_adds = 0;  // of the unit that the function names: a token, an image
  int64_t parameters = 0;
};

constexpr Cost operator+(Cost a, Cost b) { return {a.multiply_adds + b.multiply_adds, a.parameters + b.parameters}; }
// The same layer, with one set of parameters, on `times` units.
constexpr Cost on_units(Cost cost, int64_t times) { return {cost.multiply_adds * times, cost.parameters}; }
// `count` layers with parameters of their own.
constexpr Cost copies(Cost cost, int64_t count) { return {cost.multiply_adds * count, cost.parameters * count}; }

// Per row of `inputs` numbers.
Cost linear_cost(int64_t inputs, int64_t outputs, bool bias);

// A square convolution, per place of the map that it makes; zeros around the map count as numbers.
struct ConvShape {
  int64_t in = 0, out = 0;  // channels
  int64_t kernel = 3;
  bool bias = false;
};
Cost conv_cost(const ConvShape& conv);

// Scale and shift of a normalisation: parameters only.
Cost norm_cost(int64_t width);

// An LSTM layer without biases, per token. With `projection` > 0 its state is projected to that width, which is then
// the recurrent input, too (Sak et al. 2014).
Cost lstm_cost(int64_t inputs, int64_t units, int64_t projection = 0);

// A perceptron D -> F -> ... -> F -> O with `depth` hidden layers, per token.
struct MlpShape {
  int64_t width = 0;   // D
  int64_t hidden = 0;  // F
  int64_t depth = 1;
  bool bias = false;
  bool gated = false;   // SwiGLU: a second first layer of the same shape
  int64_t outputs = 0;  // O; 0: D
};
Cost mlp_cost(const MlpShape& mlp);

// A linear router, per token: `maps` matrices D x E (2 for noisy top-k: Wg and Wn).
Cost router_cost(int64_t width, int64_t experts, int64_t maps = 1);
// Two levels, per token: a primary router over `groups`, and one over the experts of each of the `chosen_groups`.
Cost hierarchical_router_cost(int64_t width, int64_t experts, int64_t groups, int64_t chosen_groups, int64_t maps = 1);

// Experts of which a token uses `chosen`, per token: multiply-adds of those, parameters of all. `expert`: one of them.
Cost experts_cost(Cost expert, int64_t experts, int64_t chosen);

}  // namespace sparsight
