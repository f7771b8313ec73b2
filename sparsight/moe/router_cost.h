// The cost of a router for one image, and how many rows it sends to the experts: what Router::cost() returns. Counted
// for training: router.k and not router.eval_k, the noise of routers that have it, and every assignment, before
// capacity. Letters: moe/axes.md.
#pragma once

#include <optional>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

struct RouterCost {
  Cost cost;                       // of the decision, per image
  double rows = 0;                 // assignments of an image, all experts together; at most, where it may skip some
  double active = 0;               // experts that one token uses, on average
  std::optional<int64_t> touched;  // experts that an image's tokens can reach, where that is not one a row
  int64_t per_token = 0;           // K of token-choice routers, which [capacity] applies to; else 0
  bool varying = false;  // how many assignments it makes is up to the tokens: rows is what it works towards, or
                         // at most makes
  bool combined = true;  // the layer weights the experts' outputs by gates and adds them
};

// Of a router that chooses k experts for each token. of_token: what choosing them costs, per token.
RouterCost token_choice_cost(const Cost& of_token, int64_t k, const TokenLayout& layout);

// The same where the number varies, by `mean_k` on average.
RouterCost varying_choice_cost(const Cost& of_token, double mean_k, const TokenLayout& layout);

// Of experts that choose: `rows` of each image's tokens, by any of the experts.
RouterCost expert_choice_cost(const Cost& of_token, double rows, int64_t experts, const TokenLayout& layout);

}  // namespace sparsight
