// Experts with equal scores: the lowest index is chosen first, or one at random, as in equation 1 of Puigcerver et al.
// 2022, "On the Adversarial Robustness of Mixture of Experts". Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// The purpose of the random numbers, for Router::random_purposes().
inline constexpr const char* kTieSamples = "ties";

// For routers that choose by logits.
struct TieOptions {
  std::string ties = "lowest";
  void declare(OptionSet& set);

  // U[0,1) of the shape of `logits` [R,E], for the images' rows (router_uniform), in evaluation too. Undefined with
  // ties = "lowest".
  at::Tensor draw(const RouterInput& input, const at::Tensor& logits) const;
};

// top_experts(), where of equal scores the one with the smaller `draw` [N,E] is first; without a draw the one with the
// lower index.
at::Tensor top_experts_by_draw(const at::Tensor& scores, int64_t k, const at::Tensor& draw);

}  // namespace sparsight
