// Runs one MoE layer on given tokens and keeps everything that it computes as named tensors: for comparing the layer
// with another implementation, or with a calculation by hand. Letters: moe/axes.md.
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

// The input of a probe. Everything except the tokens is optional.
struct LayerProbeInput {
  at::Tensor tokens;       // [N,D], or [B,S,D]: B images of S tokens
  at::Tensor gradient;     // of the shape of `tokens`: d(loss)/d(output)
  RoutingContext context;  // noise samples, padding, ...
  NamedTensors weights;    // "router.*", "experts.*", "shared.*"; missing ones are initialised from the seed
};

// From a .npy file (tokens) or a safetensors file with the tensors "tokens", "grad" (like tokens), "noise" ([N,E]; or
// "noise.<purpose>"), "valid" ([N] bool), "token_id" ([N] integers), "target" ([B,E], rows of shares that sum to 1),
// "priority" ([N]) and weights. Raises Error for other names, types and shapes.
LayerProbeInput read_layer_probe_input(const std::string& path);

struct LayerProbeOptions {
  Json config;  // resolved: [moe], [experts], [router], [capacity], [losses], run.seed; [moe] hidden = 0 stands for 4 D
  bool training = false;
  bool float64 = false;
  int64_t prefix = 0;                   // leading tokens of an image that are not patches
  std::optional<Routing> routing = {};  // replaces the router's decision
  int64_t grid_h = 0, grid_w = 0;       // grid of the other tokens, row by row; 0: none
};

struct LayerProbe {
  MoeOutput output;                      // its tensors of the shape [N,D]
  std::vector<std::string> initialised;  // weights that the input did not give
  // All results: output, the router's decision and scores, counts, losses, gradients ("grad.tokens", "grad.<weight>")
  // and the layer's weights. docs/moe.md lists the names.
  NamedTensors tensors;
};

// Gradients are those of <gradient, output> plus the weighted auxiliary losses; omitted if there are neither. Raises
// UsageError for settings and Error for tensors that do not fit.
LayerProbe run_layer_probe(const LayerProbeInput& input, const LayerProbeOptions& options);

}  // namespace sparsight
