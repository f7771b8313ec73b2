#include "sparsight/moe/routers/expert_choice.h"

#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"

namespace sparsight {

void ExpertChoiceOptions::declare(OptionSet& set) {
  set.real("experts_per_token", &experts_per_token, {1e-6, 65536},
           "experts per token on average (capacity factor): each expert takes this times tokens / experts")
      .live = true;
  declare_eval_choices(set, "experts_per_token", &eval_experts_per_token, "experts per token on average");
  set.choice("pool", &pool, {"batch", "image"}, "the tokens that an expert chooses from: the batch, or each image");
}

at::Tensor tokens_of_each(const at::Tensor& sizes, int64_t experts, double experts_per_token) {
  constexpr double kRounding = 1e-9;  // 1.1 * 10 is 11.000000000000002 and must not become 12
  const double share = experts_per_token / static_cast<double>(experts) * (1 - kRounding);
  return at::minimum((sizes.to(torch::kDouble) * share).ceil().to(torch::kLong).clamp_min(1), sizes);
}

Routing route_expert_choice(const at::Tensor& clean, const at::Tensor& valid, int64_t groups,
                            double experts_per_token) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = softmax_rows(clean);
  const at::Tensor ranked = ranked_tokens(routing.scores, groups, valid);
  const at::Tensor sizes = valid.defined() ? valid.reshape({groups, ranked.size(2)}).sum(1)
                                           : at::full({groups}, ranked.size(2), ranked.options());
  choose_per_expert(routing, ranked, tokens_of_each(sizes, routing.experts, experts_per_token));
  routing.gate = at_assignments(routing, routing.scores);
  finish_routing(routing);
  return routing;
}

ExpertChoiceRouter::ExpertChoiceRouter(const ExpertChoiceOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  check_choices("experts_per_token", options_.experts_per_token, options_.eval_experts_per_token, shape.experts,
                "experts");
}

Routing ExpertChoiceRouter::choose(const RouterInput& input) {
  return route_expert_choice(
      router_logits(input.tokens, weight), input.context.valid, options_.pool == "image" ? input.layout.images : 1,
      select_choices(input.mode.choices, options_.experts_per_token, options_.eval_experts_per_token));
}

void ExpertChoiceRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

std::unique_ptr<engine::Router> ExpertChoiceRouter::compile() const {
  return std::make_unique<engine::ExpertChoiceRouter>(
      engine::RouterLogits(linear_map(weight)),
      select_choices(false, options_.experts_per_token, options_.eval_experts_per_token), options_.pool == "image");
}

RouterCost ExpertChoiceRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0), tokens = layout.per_image;
  double rows = options_.experts_per_token * static_cast<double>(tokens);  // of one image in a batch, on average
  if (options_.pool == "image") {
    const at::Tensor of_each = tokens_of_each(at::full({}, tokens, at::kLong), experts, options_.experts_per_token);
    rows = static_cast<double>(experts * of_each.item<int64_t>());
  }
  return expert_choice_cost(router_cost(weight.size(1), experts), rows, experts, layout);
}

}  // namespace sparsight
