// The input of a model: images, the step's random streams, optional information about the images, and what to return
// besides logits.
// Letters: moe/axes.md.
#pragma once

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
  at::Tensor image = {};     // [B] int64: number of each image in the whole batch of the step, or in the dataset;
                             // undefined: 0 .. B-1. Everything that is drawn at random for an image is keyed by its
                             // number, so that neither splitting a batch nor dropping others from it changes anything
  at::Tensor group = {};     // [B] int64: images of one number share the experts' buffers; undefined: from the numbers
                             // and [capacity] group
  at::Tensor target = {};    // [B,E]: the share of each expert that a guided router should give an image
  at::Tensor token_id = {};  // [B,S] int64: what hash routing goes by
  at::Tensor priority = {};  // [B,S]: who gets a place first, for [capacity] priority = "given"
};

// By default a forward pass is an evaluation.
struct ModelInput {
  at::Tensor images;  // [B,C,H,W] pixels in 0..1
  ForwardMode mode = {};
  StepRandom random = {};
  ImageInfo info = {};
  std::map<std::string, Routing> routings = {};  // by MoE layer: decisions that take the place of its router's (a
                                                 // replay, an attack); of as many images and tokens
  std::vector<std::string> taps = {};            // names of inner results to return, of ImageModel::tap_names()
};

}  // namespace sparsight
