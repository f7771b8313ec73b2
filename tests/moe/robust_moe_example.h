// A worked example of routing under attack: one group of 6 tokens, 3 experts, k = 2, for clean and for attacked tokens.
// The expected values in the tests that include this were computed in float64, independently of this library.
#pragma once

#include <string>

#include <torch/types.h>

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight::test {

inline at::Tensor clean_group() {  // logits [N,E]
  return torch::tensor({{2., 1., 0.}, {1.5, .2, 1.}, {3., .1, .3}, {.5, 1.2, .4}, {1.1, 1., -.5}, {.2, .1, .9}},
                       torch::kDouble);
}
inline at::Tensor attacked_group() {
  return torch::tensor({{1., 2., .5}, {1.5, 1.1, 1.}, {3., .4, .3}, {.5, .3, .4}, {.2, 1., .6}, {1.3, .1, .9}},
                       torch::kDouble);
}
inline at::Tensor group_noise() {  // N(0,1) for the noise of the router, whose standard deviation is 1/3
  return 3 *
         torch::tensor({{.1, -.2, .05}, {-.1, 0., .3}, {.2, .1, -.1}, {0., -.3, .1}, {-.2, .2, .15}, {.05, -.05, -.25}},
                       torch::kDouble);
}

// At most `slots` tokens for each expert: 4 are an even share. bpr: batch priority routing.
inline Routing routed_group(const at::Tensor& logits, int64_t slots, bool bpr = false) {
  Routing routing = route_softmax_topk(logits, {}, 0, 2, false);
  routing.layer = "blocks.1.mlp";
  routing.layout = {1, logits.size(0), 0, 0, 0};
  CapacityOptions options;
  options.priority = bpr ? "max_gate" : "none";
  apply_capacity(routing, options, static_cast<double>(slots) / 4);
  TORCH_CHECK(routing.capacity.item<int64_t>() == slots);
  return routing;
}

}  // namespace sparsight::test
