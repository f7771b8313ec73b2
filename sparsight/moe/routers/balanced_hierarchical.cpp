#include "sparsight/moe/routers/balanced_hierarchical.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/two_level.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/balanced_batchwise.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/group_members.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {
namespace {

// The decision of one group's router. logits: [X,E/G]; threshold: [E/G].
using RouteGroup = std::function<Routing(const at::Tensor& logits, const at::Tensor& threshold)>;

// The groups' routers on the tokens that each group took, joined.
Routing join_levels(Routing of_groups, const GroupLogits& secondary, const at::Tensor& threshold,
                    const RouteGroup& route_group) {
  const int64_t tokens = of_groups.tokens, groups = of_groups.experts, experts = threshold.size(0);
  const int64_t size = experts / groups;
  std::vector<at::Tensor> token, expert, rank, gate, scores;
  for (int64_t i = 0; i < groups; ++i) {
    const GroupMembers members = group_members(of_groups, i);
    const Routing inner = route_group(secondary(i, members.token), threshold.narrow(0, i * size, size));
    token.push_back(members.token.index_select(0, inner.token));
    expert.push_back(inner.expert + i * size);
    rank.push_back(inner.rank);
    gate.push_back(inner.gate * of_groups.gate.index_select(0, members.assignment).index_select(0, inner.token));
    scores.push_back(at::zeros({tokens, size}, inner.scores.options()).index_copy(0, members.token, inner.scores));
  }
  Routing routing;
  routing.tokens = tokens;
  routing.experts = experts;
  routing.threshold = threshold;
  routing.scores = at::cat(scores, 1);
  routing.token = at::cat(token);
  routing.expert = at::cat(expert);
  routing.rank = at::cat(rank);
  routing.gate = at::cat(gate);
  routing.groups = std::make_shared<const Routing>(std::move(of_groups));
  finish_routing(routing);
  return routing;
}

}  // namespace

void BalancedHierarchicalOptions::declare(OptionSet& set) {
  set.integer("groups", &groups, {1, 65536}, "number of equal groups of experts");
  set.integer("k_groups", &k_groups, {1, 65536},
              "groups per token on average; k_groups * tokens must be a multiple of groups");
  set.integer("k", &k, {1, 65536},
              "experts per token in each of its groups, on average; k * tokens of a group must be a multiple of its "
              "experts");
  set.integer("eval_k_groups", &eval_k_groups, {0, 65536},
              "groups per token in evaluation: the best, instead of those above their thresholds; 0: by thresholds");
  set.integer("eval_k", &eval_k, {0, 65536},
              "experts per token in each of its groups in evaluation: the best, instead of those above their "
              "thresholds; 0: by thresholds");
  ThresholdOptions::declare(set);
}

Routing route_balanced_hierarchical(const at::Tensor& primary, const GroupLogits& secondary,
                                    const TwoLevelThresholds& thresholds, TwoLevelChoices choices,
                                    const at::Tensor& valid) {
  const int64_t groups = primary.size(1), size = thresholds.of_experts.size(0) / groups;
  const int64_t tokens = valid_tokens(valid, primary.size(0));
  if (choices.groups * tokens % groups != 0)
    fail_usage("[router] strict balance of ", choices.groups, " * ", tokens, " choices over ", groups,
               " groups: k_groups * tokens must be a multiple of groups; change the batch, router.k_groups or "
               "router.groups");
  const int64_t per_group = choices.groups * tokens / groups;
  if (choices.experts * per_group % size != 0)
    fail_usage("[router] strict balance of ", choices.experts, " * ", per_group, " assignments over the ", size,
               " experts of a group: k * tokens of a group must be a multiple of its experts; change the batch, "
               "router.k or moe.experts");
  Routing of_groups = route_balanced_batchwise(primary, thresholds.of_groups, choices.groups, valid);
  if (valid.defined()) drop_padding(of_groups, valid);
  return join_levels(std::move(of_groups), secondary, thresholds.of_experts,
                     [&](const at::Tensor& logits, const at::Tensor& threshold) {
                       return route_balanced_batchwise(logits, threshold, choices.experts, {});
                     });
}

Routing route_hierarchical_above_threshold(const at::Tensor& primary, const GroupLogits& secondary,
                                           const TwoLevelThresholds& thresholds, const at::Tensor& valid,
                                           TwoLevelChoices best) {
  Routing of_groups = best.groups > 0 ? route_best_experts(primary, thresholds.of_groups, best.groups)
                                      : route_above_threshold(primary, thresholds.of_groups, valid);
  if (valid.defined()) drop_padding(of_groups, valid);
  return join_levels(std::move(of_groups), secondary, thresholds.of_experts,
                     [&](const at::Tensor& logits, const at::Tensor& threshold) {
                       return best.experts > 0 ? route_best_experts(logits, threshold, best.experts)
                                               : route_above_threshold(logits, threshold, {});
                     });
}

BalancedHierarchicalRouter::BalancedHierarchicalRouter(const BalancedHierarchicalOptions& options, RouterShape shape)
    : group_weight(register_parameter("group_weight", parameter_zeros({options.groups, shape.width}))),
      weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      thresholds{register_buffer("group_threshold", torch::zeros({options.groups})),
                 register_buffer("threshold", torch::zeros({shape.experts}))},
      steps(register_buffer("steps", torch::zeros({}, torch::kLong))),
      options_(options) {
  options_.check(shape.experts);
}

// The loss of balanced_batchwise, over all experts; the paper has no term for groups.
std::vector<LossWeight> BalancedHierarchicalRouter::default_losses() const { return {{"importance", 0.01}}; }

Routing BalancedHierarchicalRouter::choose(const RouterInput& input) {
  const int64_t size = weight.size(0) / options_.groups;
  const at::Tensor primary = router_logits(input.tokens, group_weight);
  const auto secondary = [&](int64_t group, const at::Tensor& token) {
    return router_logits(input.tokens.index_select(0, token), weight.narrow(0, group * size, size));
  };
  if (!input.mode.choices)
    return route_hierarchical_above_threshold(primary, secondary, thresholds, input.context.valid,
                                              {options_.eval_k_groups, options_.eval_k});
  return route_balanced_hierarchical(primary, secondary, thresholds, {options_.k_groups, options_.k},
                                     input.context.valid);
}

void BalancedHierarchicalRouter::post_step_update(const std::vector<Routing>& routings) {
  if (routings.empty()) return;
  std::vector<Routing> of_groups;
  for (const Routing& routing : routings) {
    if (!routing.groups)
      fail("balanced_hierarchical needs routings with two levels, got one without Routing::groups; pass its own");
    of_groups.push_back(*routing.groups);
  }
  const int64_t experts = weight.size(0), step = steps.item<int64_t>();
  const torch::NoGradGuard no_grad;
  thresholds.of_groups.copy_(moved_threshold(thresholds.of_groups, of_groups, options_.rate_at(step, options_.groups)));
  // Scores of tokens outside the group are 0: they must not pass.
  thresholds.of_experts.copy_(
      moved_threshold(thresholds.of_experts, routings, options_.rate_at(step, experts / options_.groups)).clamp_min(0));
  steps += 1;
}

void BalancedHierarchicalRouter::initialize(const InitRandom& random) {
  constexpr double kStd = 0.01;
  init_normal(group_weight, kStd, random.stream("group_weight"));
  init_normal(weight, kStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  thresholds.of_groups.fill_(1.0 / static_cast<double>(options_.groups));
  thresholds.of_experts.fill_(static_cast<double>(options_.groups) / static_cast<double>(weight.size(0)));
  steps.zero_();
}

std::unique_ptr<engine::Router> BalancedHierarchicalRouter::compile() const {
  return std::make_unique<engine::TwoLevelRouter>(
      linear_map(group_weight), linear_map(weight),
      engine::LevelRule{options_.eval_k_groups, to_floats(thresholds.of_groups)},
      engine::LevelRule{options_.eval_k, to_floats(thresholds.of_experts)}, /*sorted=*/false);
}

RouterCost BalancedHierarchicalRouter::cost(const TokenLayout& layout) const {
  const BalancedHierarchicalOptions& o = options_;
  const int64_t experts = weight.size(0);
  return expert_choice_cost(hierarchical_router_cost(weight.size(1), experts, o.groups, o.k_groups),
                            static_cast<double>(o.k_groups * o.k * layout.per_image), experts, layout);
}

}  // namespace sparsight
