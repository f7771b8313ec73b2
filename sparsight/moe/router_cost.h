// The cost of a router for one image, and the number of rows it sends to the experts, from Router::cost(). For
// training: router.k and not router.eval_k, with noise, and all assignments before capacity. Letters: moe/axes.md.
#pragma once

#include <optional>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

struct RouterCost {
  Cost cost;                       // of the decision, per image
  double rows = 0;                 // assignments of an image, over all experts; the maximum if it may skip some
  double active = 0;               // experts that one token uses, on average
  std::optional<int64_t> touched;  // experts that an image's tokens can reach, if not one per row
  int64_t per_token = 0;           // K of token-choice routers, which [capacity] applies to; else 0
  bool varying = false;            // the number of assignments depends on the tokens: rows is its target, or the
                                   // maximum
  bool combined = true;            // the layer weights the experts' outputs by gates and adds them
};

// For a router that chooses k experts per token. of_token: cost of the choice, per token.
RouterCost token_choice_cost(const Cost& of_token, int64_t k, const TokenLayout& layout);

// The same for a varying number, `mean_k` on average.
RouterCost varying_choice_cost(const Cost& of_token, double mean_k, const TokenLayout& layout);

// For experts that choose: `rows` assignments per image, over all experts.
RouterCost expert_choice_cost(const Cost& of_token, double rows, int64_t experts, const TokenLayout& layout);

}  // namespace sparsight
