// The input of a model: images, the step's random streams, optional information about the images, and what to return
// besides logits.
// Letters: moe/axes.md.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/forward_mode.h"
#include "sparsight/core/random.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Optional information about the images. Per-token tensors are in the order of the model's tokens, prefix tokens
// included.
struct ImageInfo {
  at::Tensor image = {};     // [B] int64: index of each image in the whole batch of the step, or in the dataset;
                             // undefined: 0 .. B-1. All random samples of an image are keyed by it, so that neither
                             // splitting a batch nor removing other images changes them
  at::Tensor group = {};     // [B] int64: images with the same number share the experts' buffers; undefined: from
                             // `image` and [capacity] group
  at::Tensor target = {};    // [B,E]: target probability of each expert for guided routers
  at::Tensor token_id = {};  // [B,S] int64: key of hash routing
  at::Tensor priority = {};  // [B,S]: order of slots for [capacity] priority = "given"
};

class MoeLayer;
struct MoeInput;

// Called at each MoE layer between its decision and its experts: may read or replace the decision, and the tokens that
// the experts get. With a model-wide router each layer gets the shared decision, of which ModelOutput has the router's.
using ExpertsHook = std::function<void(MoeLayer& layer, MoeInput& input, Routing& routing)>;

// The default is a forward pass in evaluation mode.
struct ModelInput {
  at::Tensor images;  // [B,C,H,W] pixels in 0..1
  ForwardMode mode = {};
  StepRandom random = {};
  ImageInfo info = {};
  std::map<std::string, Routing> routings = {};  // by MoE layer: used instead of its router's decision (a replay, an
                                                 // attack); for the same number of images and tokens
  ExpertsHook pre_experts_hook = {};             // null: none
  std::vector<std::string> taps = {};            // intermediate outputs to return, from ImageModel::tap_names()

  bool is_tapped(const std::string& name) const { return std::ranges::find(taps, name) != taps.end(); }
};

}  // namespace sparsight
