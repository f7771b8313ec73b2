// A router's input made of tokens alone.
#pragma once

#include "sparsight/moe/router.h"

namespace sparsight::test {

// A training pass: one image, or images of one token each, which then have numbers of their own.
inline RouterInput token_batch(const at::Tensor& tokens, uint64_t step = 0) {
  return {tokens, {1, tokens.size(0), 0, 0, 0}, "blocks.1.mlp", ForwardMode::training(), {7, step}};
}

inline RouterInput token_batch_of_images(const at::Tensor& tokens, int64_t first = 0, uint64_t step = 0) {
  RouterInput input = token_batch(tokens, step);
  input.layout = {tokens.size(0), 1, 0, 0, 0};
  input.context.image = at::arange(first, first + tokens.size(0), at::kLong);
  return input;
}

inline RouterInput in_mode(RouterInput input, const ForwardMode& mode) {
  input.mode = mode;
  return input;
}

inline RouterInput evaluated(RouterInput input) { return in_mode(std::move(input), ForwardMode::evaluation()); }

}  // namespace sparsight::test
