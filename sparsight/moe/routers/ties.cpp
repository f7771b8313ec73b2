#include "sparsight/moe/routers/ties.h"

#include "sparsight/ops/top_experts.h"

namespace sparsight {

void TieOptions::declare(OptionSet& set) {
  set.choice("ties", &ties, {"lowest", "random"},
             "which of several experts with equal logits is chosen: the one with the lowest index, or any of them with "
             "the same probability (equation 1 of Puigcerver et al. 2022), in evaluation too");
}

at::Tensor TieOptions::draw(const RouterInput& input, const at::Tensor& logits) const {
  return ties == "random" ? router_uniform(input, logits.detach(), kTieSamples) : at::Tensor();
}

// Where the experts are in random order, the first of equal scores is a random one.
at::Tensor top_experts_by_draw(const at::Tensor& scores, int64_t k, const at::Tensor& draw) {
  if (!draw.defined()) return top_experts(scores, k);
  const at::Tensor order = draw.argsort(/*stable=*/true, 1);
  return order.gather(1, top_experts(scores.detach().gather(1, order), k));
}

}  // namespace sparsight
