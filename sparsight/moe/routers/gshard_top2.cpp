#include "sparsight/moe/routers/gshard_top2.h"

#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

// [N,2]: each token's first and second expert.
at::Tensor two_experts(const at::Tensor& clean, const at::Tensor& gumbel) {
  if (!gumbel.defined()) return top_experts(clean, 2);
  const at::Tensor first = top_experts(clean, 1);
  const at::Tensor others = clean.detach().scatter(1, first, -std::numeric_limits<double>::infinity());
  return at::cat({first, top_experts(others + gumbel, 1)}, 1);
}

}  // namespace

void GshardTop2Options::declare(OptionSet& set) {
  FixedChoiceOptions::declare(set);
  const std::vector<std::string> policies{"all", "none", "threshold", "random"};
  set.choice("second", &second, policies, "which second choices are used while training");
  set.choice("eval_second", &eval_second, policies, "which second choices are used in evaluation");
  set.real("threshold", &threshold, {1e-6, 1},
           "gate above which a second choice is used, or (random) is used for sure: 0.5 in GShard, 0.2 in Mesh-TF");
  set.flag("sample_second", &sample_second, "draw the second expert from the router's probabilities while training");
}

Routing route_gshard_top2(const at::Tensor& clean, const std::string& second, double threshold, const at::Tensor& draw,
                          const at::Tensor& gumbel) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = at::softmax(clean, 1);
  const at::Tensor chosen = two_experts(clean, gumbel);
  const at::Tensor gate = at::softmax(clean.gather(1, chosen), 1);
  choose_per_token(routing, chosen, gate);
  finish_routing(routing);
  if (second == "all") return routing;
  at::Tensor used = at::ones_like(chosen, torch::kBool);
  const at::Tensor second_gate = gate.detach().select(1, 1);
  if (second == "none") used.select(1, 1).fill_(false);
  if (second == "threshold") used.select(1, 1).copy_(second_gate > threshold);
  if (second == "random") used.select(1, 1).copy_(draw < second_gate / threshold);
  select_assignments(routing, at::nonzero(used.view({-1})).squeeze(1));
  return routing;
}

GshardTop2Router::GshardTop2Router(const GshardTop2Options& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check("gshard_top2");
  if (shape.experts < 2) fail_usage("[router] gshard_top2 needs [moe] experts of at least 2, got ", shape.experts);
}

std::vector<LossWeight> GshardTop2Router::paper_losses() const { return {{"switch", 0.01}}; }

Routing GshardTop2Router::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  const std::string& second = is_training() ? options_.second : options_.eval_second;
  at::Tensor draw, gumbel;
  if (second == "random") draw = router_uniform(input, clean, 1, "second").squeeze(1);
  if (is_training() && options_.sample_second) {
    // The draws have 32 bits: the least step away from 0 and 1 keeps both logarithms finite.
    const at::Tensor uniform = router_uniform(input, clean, clean.size(1), "second_expert").clamp(1e-7, 1 - 1e-7);
    gumbel = -at::log(-at::log(uniform));
  }
  return route_gshard_top2(clean, second, options_.threshold, draw, gumbel);
}

void GshardTop2Router::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

}  // namespace sparsight
