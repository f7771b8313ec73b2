// A small hand-made routing for the tests of analysis/ and report/.
#pragma once

#include <ATen/ops/from_blob.h>

#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight::testing {

template <class T>
at::Tensor to_tensor(std::vector<T> values, at::ScalarType dtype) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, dtype).clone();
}

// 2 images of 2 x 2 patches without class token, 3 experts, one choice per token:
//   image 0: experts 0 0 / 0 1      image 1: experts 2 2 / 0 2
// The gate of every assignment is 0.5 except the last one's, 0.9; the last assignment was dropped by capacity.
inline Routing hand_made_routing() {
  Routing routing;
  routing.layer = "blocks.1.mlp";
  routing.layout = {2, 4, 0, 2, 2};
  routing.tokens = 8;
  routing.experts = 3;
  routing.per_token = 1;
  routing.token = to_tensor<int64_t>({0, 1, 2, 3, 4, 5, 6, 7}, at::kLong);
  routing.expert = to_tensor<int64_t>({0, 0, 0, 1, 2, 2, 0, 2}, at::kLong);
  routing.rank = to_tensor<int64_t>({0, 0, 0, 0, 0, 0, 0, 0}, at::kLong);
  routing.gate = to_tensor<float>({.5f, .5f, .5f, .5f, .5f, .5f, .5f, .9f}, at::kFloat);
  routing.chosen_count = to_tensor<int64_t>({4, 1, 3}, at::kLong);
  routing.kept = to_tensor<int64_t>({1, 1, 1, 1, 1, 1, 1, 0}, at::kLong).to(at::kBool);
  routing.order = to_tensor<int64_t>({0, 1, 2, 6, 3, 4, 5}, at::kLong);
  routing.offsets = to_tensor<int64_t>({0, 4, 5, 7}, at::kLong);
  // Every token scores 0.5, 0.25, 0.25.
  std::vector<float> scores;
  for (int n = 0; n < 8; ++n) scores.insert(scores.end(), {0.5f, 0.25f, 0.25f});
  routing.scores = to_tensor<float>(scores, at::kFloat).view({8, 3});
  routing.clean_logits = routing.noisy_logits = routing.scores;
  return routing;
}

}  // namespace sparsight::testing
