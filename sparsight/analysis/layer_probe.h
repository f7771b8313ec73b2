// One MoE layer run on given tokens, with everything that it computes kept as named tensors: for comparing the layer
// with another implementation, or with arithmetic on paper. Letters: moe/axes.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {

// What a probe is given. Everything but the tokens is optional.
struct LayerProbeInput {
  at::Tensor tokens;       // [N,D], or [B,S,D]: B images of S tokens
  at::Tensor gradient;     // of the shape of `tokens`: d(loss)/d(output)
  RoutingContext context;  // noise samples, padding, ...
  NamedTensors weights;    // "router.*", "experts.*", "shared.*"; those missing are drawn from the seed
};

// From a .npy file (tokens) or a safetensors file with the tensors "tokens", "grad" (like tokens), "noise" ([N,E]; or
// "noise.<purpose>"), "valid" ([N] bool), "token_id" ([N] integers), "target" ([B,E], rows of shares that sum to 1),
// "priority" ([N]) and weights. Raises Error for other names, types and shapes.
LayerProbeInput read_layer_probe_input(const std::string& path);

struct LayerProbeOptions {
  Json config;  // resolved: [moe], [experts], [router], [capacity], [losses], run.seed; [moe] hidden = 0 stands for 4 D
  bool training = false;
  bool float64 = false;
  int64_t prefix = 0;                   // leading tokens of an image that are no patch
  std::optional<Routing> routing = {};  // takes the place of the router's decision
  int64_t grid_h = 0, grid_w = 0;       // the map that the other tokens are, row by row; 0: none
};

struct LayerProbe {
  MoeOutput output;                // its tensors of the shape [N,D]
  std::vector<std::string> drawn;  // weights that the input did not give
  // Everything: output, what the router decided and why, counts, losses, gradients ("grad.tokens", "grad.<weight>") and
  // the layer's weights. docs/moe.md lists the names.
  NamedTensors tensors;
};

// Gradients are those of <gradient, output> plus the weighted auxiliary losses; left out where neither is there. Raises
// UsageError for settings and Error for tensors that do not fit.
LayerProbe run_layer_probe(const LayerProbeInput& input, const LayerProbeOptions& options);

}  // namespace sparsight
