// What a model is given: images, the step's randomness, and what else is known of the images. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// What is known of a batch's images beside their pixels; all of it optional. What is given for each token is in the
// order of the model's tokens, prefix tokens included.
struct ImageInfo {
  int64_t first_image = 0;   // number of the first image in the whole batch of the step: everything that is drawn at
                             // random for an image is keyed by its number, so that splitting a batch changes nothing
  at::Tensor target = {};    // [B,E]: the share of each expert that a guided router should give an image
  at::Tensor token_id = {};  // [B,S] int64: what hash routing goes by
  at::Tensor priority = {};  // [B,S]: who gets a place first, for [capacity] priority = "given"
};

struct ModelInput {
  at::Tensor images;  // [B,C,H,W]
  StepRandom random;
  ImageInfo info = {};
};

}  // namespace sparsight
