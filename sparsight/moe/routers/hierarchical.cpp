#include "sparsight/moe/routers/hierarchical.h"

#include "sparsight/engine/routers/two_level.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/moe/routers/group_members.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/routers/router_logits.h"

namespace sparsight {
namespace {

Routing route(const NoisyLogits& logits, int64_t k) {
  return route_noisy_topk(logits.clean, logits.scale, logits.epsilon, k);
}

}  // namespace

void HierarchicalOptions::declare(OptionSet& set) {
  set.integer("groups", &groups, {1, 65536}, "number of equal groups of experts");
  declare_choices(set, "k_groups", &k_groups, &eval_k_groups, "groups per token");
  declare_choices(set, "k", &k, &eval_k, "experts per token in each of its groups");
  set.real("noise_floor", &noise_floor, {0, 1000}, "minimum standard deviation of the noise (0 in the paper)");
  set.flag("noise", &noise, "add noise to the logits of both levels in training");
  EvalNoiseOptions::declare(set);
}

Routing route_hierarchical(const NoisyLogits& primary, const SecondaryLogits& secondary, int64_t experts,
                           int64_t k_groups, int64_t k, const at::Tensor& valid, bool threshold_gradient) {
  Routing of_groups = route(primary, k_groups);
  of_groups.valid = valid;
  const int64_t tokens = of_groups.tokens, groups = of_groups.experts, size = experts / groups;
  const bool noisy = of_groups.noise_scale.defined();
  at::Tensor group_load;  // [G]
  if (noisy) group_load = without_padding(of_groups, load_probability(of_groups, threshold_gradient)).sum(0);

  // Each group's router on the tokens that chose it; pair: index of (token, choice of a group).
  std::vector<at::Tensor> pairs, rows, chosen, gates, scores, loads;
  for (int64_t i = 0; i < groups; ++i) {
    const auto [token, pair] = group_members(of_groups, i);  // X tokens
    const int64_t count = pair.size(0);
    if (count == 0) {
      if (noisy) loads.push_back(at::zeros({size}, primary.clean.options()));
      continue;
    }
    const Routing inner = route(secondary(i, token), k);
    pairs.push_back(pair);
    rows.push_back(token * groups + i);
    chosen.push_back(inner.expert.view({count, k}) + i * size);
    gates.push_back(inner.gate.view({count, k}));
    scores.push_back(inner.scores * of_groups.scores.index_select(0, token).select(1, i).unsqueeze(1));
    // The number of tokens is a constant; the primary load carries the gradient of the first choice.
    if (noisy)
      loads.push_back(group_load[i] * load_probability(inner, threshold_gradient).sum(0) / static_cast<double>(count));
  }

  Routing routing;
  routing.tokens = tokens;
  routing.experts = experts;
  if (noisy) routing.smooth_load = at::cat(loads);
  // Padding keeps these placeholders: route() removes it.
  const auto options = of_groups.gate.options();
  at::Tensor expert = at::arange(k, of_groups.expert.options()).unsqueeze(0) + of_groups.expert.unsqueeze(1) * size;
  at::Tensor gate = at::zeros({tokens * k_groups, k}, options);
  routing.scores = at::zeros({tokens * groups, size}, options);
  if (!pairs.empty()) {
    const at::Tensor pair = at::cat(pairs);
    expert = expert.index_copy(0, pair, at::cat(chosen));
    gate = gate.index_copy(0, pair, at::cat(gates)) * of_groups.gate.unsqueeze(1);
    routing.scores = routing.scores.index_copy(0, at::cat(rows), at::cat(scores));
  }
  routing.scores = routing.scores.view({tokens, experts});
  expert = expert.view({tokens, k_groups * k});
  gate = gate.view({tokens, k_groups * k});
  // Stable: equal gates stay in the order of the two choices. NaN ranks last.
  const at::Tensor order = at::argsort(at::nan_to_num(gate.detach(), -1), /*stable=*/true, 1, /*descending=*/true);
  choose_per_token(routing, expert.gather(1, order), gate.gather(1, order));
  finish_routing(routing);
  if (valid.defined()) drop_padding(of_groups, valid);
  routing.groups = std::make_shared<const Routing>(std::move(of_groups));
  return routing;
}

HierarchicalRouter::HierarchicalRouter(const HierarchicalOptions& options, RouterShape shape)
    : group_weight(register_parameter("group_weight", parameter_zeros({options.groups, shape.width}))),
      group_noise_weight(register_parameter("group_noise_weight", parameter_zeros({options.groups, shape.width}))),
      weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      noise_weight(register_parameter("noise_weight", parameter_zeros({shape.experts, shape.width}))),
      options_(options) {
  options_.check(shape.experts);
}

std::vector<LossWeight> HierarchicalRouter::default_losses() const { return {{"importance", 0.1}, {"load", 0.1}}; }

Routing HierarchicalRouter::choose(const RouterInput& input) {
  const int64_t experts = weight.size(0), size = experts / options_.groups;
  const bool noisy = options_.noise && options_.samples(input.mode.noise);
  NoisyLogits primary{router_logits(input.tokens, group_weight), {}, {}};
  at::Tensor epsilon;  // [N,E]
  if (noisy) {
    primary.scale = noise_scale(router_logits(input.tokens, group_noise_weight), options_.noise_floor);
    primary.epsilon = router_normal(input, primary.clean, "group_noise");
    epsilon = router_normal(input, at::empty({input.tokens.size(0), experts}, primary.clean.options()), "noise");
  }
  const auto secondary = [&](int64_t group, const at::Tensor& token) {
    const at::Tensor x = input.tokens.index_select(0, token);
    NoisyLogits logits{router_logits(x, weight.narrow(0, group * size, size)), {}, {}};
    if (!noisy) return logits;
    logits.scale = noise_scale(router_logits(x, noise_weight.narrow(0, group * size, size)), options_.noise_floor);
    logits.epsilon = epsilon.narrow(1, group * size, size).index_select(0, token);
    return logits;
  };
  const HierarchicalOptions& o = options_;
  return route_hierarchical(
      primary, secondary, experts, select_choices(input.mode.choices, o.k_groups, o.eval_k_groups),
      select_choices(input.mode.choices, o.k, o.eval_k), input.context.valid, input.threshold_gradient);
}

void HierarchicalRouter::initialize(const InitRandom&) {
  const torch::NoGradGuard no_grad;
  for (at::Tensor* p : {&group_weight, &group_noise_weight, &weight, &noise_weight}) p->zero_();
}

std::unique_ptr<engine::Router> HierarchicalRouter::compile() const {
  if (options_.noise && options_.samples(false)) fail_compile("eval_noise = true draws random numbers");
  const HierarchicalOptions& o = options_;
  return std::make_unique<engine::TwoLevelRouter>(
      linear_map(group_weight), linear_map(weight),
      engine::LevelRule{select_choices(false, o.k_groups, o.eval_k_groups), {}},
      engine::LevelRule{select_choices(false, o.k, o.eval_k), {}},
      /*sorted=*/true);
}

RouterCost HierarchicalRouter::cost(const TokenLayout& layout) const {
  const HierarchicalOptions& o = options_;
  const int64_t experts = weight.size(0);
  const Cost maps = hierarchical_router_cost(weight.size(1), experts, o.groups, o.k_groups);
  const int64_t logits = o.groups + o.k_groups * (experts / o.groups);
  return token_choice_cost(with_noise_map(maps, logits, o.noise), o.k_groups * o.k, layout);
}

}  // namespace sparsight
