// Vision transformers made without torch, of random weights: pixels of RGB images, patches, a class token, MLPs four
// times as wide as the tokens, and experts in the last blocks.
#pragma once

#include "sparsight/engine/program.h"
#include "sparsight/kernels/types.h"

namespace sparsight::test {

constexpr int64_t kVitSide = 32, kVitWidth = 64, kVitExperts = 10, kVitClasses = 12;

struct VitShape {
  int64_t side = kVitSide, patch = 4, classes = kVitClasses;
  int64_t depth = 6, width = kVitWidth, heads = 4;
  int64_t routed = 2;  // blocks with experts, the last ones; 0: a dense model
  int64_t experts = kVitExperts, k = 2;
  bool per_token = false;      // each token gets experts of its own; else all tokens of an image the same
  bool shared_router = false;  // one router decides for all layers ([router] scope = "model"); else each has its own
  WeightType type = WeightType::fp32;
  uint64_t seed = 1;
};

// Raises UsageError for a shape that cannot be.
engine::Program make_vit(const VitShape& shape);

// 32 x 32 pixels, patches of 4 x 4, 6 blocks of width 64, the last two with 10 experts of which each image gets 2, and
// 12 classes.
inline engine::Program small_vit(uint64_t seed = 1, WeightType type = WeightType::fp32) {
  return make_vit({.type = type, .seed = seed});
}

}  // namespace sparsight::test
