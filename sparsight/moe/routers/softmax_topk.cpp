#include "sparsight/moe/routers/softmax_topk.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

void SoftmaxTopKOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 4096}, "experts per token");
  set.integer("eval_k", &eval_k, {0, 4096}, "experts per token in evaluation; 0: as in training");
  set.real("noise", &noise, {0, 1000},
           "standard deviation of the noise on the logits while training, as a multiple of 1/experts");
  set.flag("renormalize", &renormalize, "divide the gates of a token by their sum (V-MoE does not)");
}

Routing route_softmax_topk(const at::Tensor& clean, const at::Tensor& epsilon, double noise_std, int64_t k,
                           bool renormalize) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = clean;
  routing.noisy_logits = epsilon.defined() ? clean + noise_std * epsilon : clean;
  routing.noise_std = epsilon.defined() ? noise_std : 0;
  routing.scores = at::softmax(routing.noisy_logits, 1);
  // The softmax is monotone: the k largest logits are the k largest scores, and differ where scores underflow to 0.
  const at::Tensor chosen = top_experts(routing.noisy_logits, k);
  at::Tensor gate = routing.scores.gather(1, chosen);
  // The softmax of the chosen logits is gate / sum(gate), without dividing by a sum that may be 0.
  if (renormalize) gate = at::softmax(routing.noisy_logits.gather(1, chosen), 1);
  choose_per_token(routing, chosen, gate);
  finish_routing(routing);
  return routing;
}

SoftmaxTopKRouter::SoftmaxTopKRouter(const SoftmaxTopKOptions& options, RouterShape shape)
    : weight(register_parameter("weight", torch::zeros({shape.experts, shape.width}))), options_(options) {
  if (options_.eval_k == 0) options_.eval_k = options_.k;
  const int64_t most = std::max(options_.k, options_.eval_k);
  if (most > shape.experts)
    fail_usage("[router] chooses ", most, " experts per token but [moe] experts is ", shape.experts,
               "; lower k or add experts");
}

Routing SoftmaxTopKRouter::route(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  const double noise_std = is_training() ? options_.noise / static_cast<double>(clean.size(1)) : 0;
  at::Tensor epsilon;
  if (noise_std > 0) epsilon = normal_like(clean, clean.sizes(), input.random.stream(input.layer + ".router.noise"));
  return route_softmax_topk(clean, epsilon, noise_std, is_training() ? options_.k : options_.eval_k,
                            options_.renormalize);
}

void SoftmaxTopKRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

}  // namespace sparsight
