#include "sparsight/analysis/moe_cost.h"

#include <cmath>
#include <functional>

#include "sparsight/analysis/component_settings.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/moe/experts/conv_experts.h"
#include "sparsight/moe/experts/linear_experts.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/experts/swiglu_experts.h"
#include "sparsight/moe/routers/balanced_batchwise.h"
#include "sparsight/moe/routers/balanced_hierarchical.h"
#include "sparsight/moe/routers/base.h"
#include "sparsight/moe/routers/cosine.h"
#include "sparsight/moe/routers/dense_softmax.h"
#include "sparsight/moe/routers/expert_choice.h"
#include "sparsight/moe/routers/gshard_top2.h"
#include "sparsight/moe/routers/hash.h"
#include "sparsight/moe/routers/hierarchical.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/routers/patch_choice.h"
#include "sparsight/moe/routers/per_image.h"
#include "sparsight/moe/routers/random.h"
#include "sparsight/moe/routers/round_robin.h"
#include "sparsight/moe/routers/sigmoid_bias.h"
#include "sparsight/moe/routers/sinkhorn.h"
#include "sparsight/moe/routers/soft_moe.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/moe/routers/switch_top1.h"

namespace sparsight {
namespace {

// What a router works on.
struct Routed {
  int64_t width, experts, tokens;  // D, E, S
  Cost map() const { return router_cost(width, experts); }
};

// What it costs an image, and the rows of an image that the experts compute, all together.
struct RouterUse {
  Cost router;
  int64_t rows = 0;
};

RouterUse per_token(Cost router, int64_t choices, const Routed& r) {
  return {on_units(router, r.tokens), choices * r.tokens};
}

// With the maps that make the noise, which stay unused where there is none.
Cost with_noise_maps(Cost maps, bool noise) { return {maps.multiply_adds * (noise ? 2 : 1), 2 * maps.parameters}; }

template <class Options>
RouterUse use_of_one_map(const Options& o, const Routed& r) {
  return per_token(r.map(), o.of(/*training=*/true), r);
}

template <class Options>
RouterUse use_of_no_map(const Options& o, const Routed& r) {
  return per_token({}, o.of(/*training=*/true), r);
}

RouterUse use_of_noisy_topk(const NoisyTopKOptions& o, const Routed& r) {
  return per_token(with_noise_maps(r.map(), o.noise), o.of(/*training=*/true), r);
}

// At most: tokens may go without their second expert.
RouterUse use_of_gshard(const GshardTop2Options& o, const Routed& r) {
  return per_token(r.map(), o.second == "none" ? 1 : 2, r);
}

RouterUse use_of_cosine(const CosineOptions& o, const Routed& r) {
  const Cost temperature{0, o.learn_temperature ? 1 : 0};
  return per_token(linear_cost(r.width, o.width, true) + linear_cost(o.width, r.experts, false) + temperature,
                   o.of(/*training=*/true), r);
}

RouterUse use_of_dense_softmax(const DenseSoftmaxOptions&, const Routed& r) { return per_token(r.map(), r.experts, r); }

RouterUse use_of_balanced_batchwise(const BalancedBatchwiseOptions& o, const Routed& r) {
  return per_token(r.map(), o.k, r);
}

RouterUse use_of_hierarchical(const HierarchicalOptions& o, const Routed& r) {
  return per_token(with_noise_maps(hierarchical_router_cost(r.width, r.experts, o.groups, o.k_groups), o.noise),
                   o.k_groups * o.k, r);
}

RouterUse use_of_balanced_hierarchical(const BalancedHierarchicalOptions& o, const Routed& r) {
  return per_token(hierarchical_router_cost(r.width, r.experts, o.groups, o.k_groups), o.k_groups * o.k, r);
}

RouterUse use_of_expert_choice(const ExpertChoiceOptions& o, const Routed& r) {
  const Cost router = on_units(r.map(), r.tokens);
  if (o.pool == "batch") return {router, std::llround(o.experts_per_token * static_cast<double>(r.tokens))};
  const at::Tensor taken = tokens_of_each(at::full({}, r.tokens, at::kLong), r.experts, o.experts_per_token);
  return {router, r.experts * taken.item<int64_t>()};
}

RouterUse use_of_patch_choice(const PatchChoiceOptions& o, const Routed& r) {
  check_patches(o, /*training=*/true, r.tokens);
  return {on_units(r.map(), r.tokens), r.experts * o.patches};
}

RouterUse use_of_per_image(const PerImageOptions& o, const Routed& r) {
  return {o.norm == "affine" ? r.map() + norm_cost(r.width) : r.map(), o.of(/*training=*/true) * r.tokens};
}

// Three products with the slots: logits, means of tokens, means of the experts' answers.
RouterUse use_of_soft_moe(const SoftMoeOptions& o, const Routed& r) {
  const int64_t slots = r.experts * o.slots, weights = slots * r.width;
  return {{3 * r.tokens * weights, weights + (o.normalize ? 1 : 0)}, slots};
}

using Counter = std::function<RouterUse(const Json& resolved, const Routed& routed)>;

template <class Options>
Counter by(RouterUse (*count)(const Options&, const Routed&)) {
  return [count](const Json& resolved, const Routed& r) { return count(settings_in<Options>(resolved, "router"), r); };
}

RouterUse router_use(const Json& resolved, const Routed& routed) {
  static const std::vector<std::pair<std::string, Counter>> counters{
      {"softmax_topk", by(use_of_one_map<SoftmaxTopKOptions>)},
      {"noisy_topk", by(use_of_noisy_topk)},
      {"gshard_top2", by(use_of_gshard)},
      {"switch_top1", by(use_of_one_map<SwitchTop1Options>)},
      {"cosine", by(use_of_cosine)},
      {"sigmoid_bias", by(use_of_one_map<SigmoidBiasOptions>)},
      {"dense_softmax", by(use_of_dense_softmax)},
      {"hash", by(use_of_no_map<HashOptions>)},
      {"random", by(use_of_no_map<RandomOptions>)},
      {"round_robin", by(use_of_no_map<RoundRobinOptions>)},
      {"expert_choice", by(use_of_expert_choice)},
      {"patch_choice", by(use_of_patch_choice)},
      {"balanced_batchwise", by(use_of_balanced_batchwise)},
      {"hierarchical", by(use_of_hierarchical)},
      {"balanced_hierarchical", by(use_of_balanced_hierarchical)},
      {"per_image", by(use_of_per_image)},
      {"base", by(use_of_one_map<BaseOptions>)},
      {"sinkhorn", by(use_of_one_map<SinkhornOptions>)},
      {"soft_moe", by(use_of_soft_moe)},
  };
  std::vector<std::string> names;
  for (const auto& [name, count] : counters) {
    if (name == name_in(resolved, "router")) return count(resolved, routed);
    names.push_back(name);
  }
  fail_usage("the cost of an MoE layer is counted with the routers ", join(names), "; not with router ",
             name_in(resolved, "router"));
}

}  // namespace

Cost expert_cost(const Json& resolved, const ExpertShape& shape) {
  const std::string kind = name_in(resolved, "experts");
  MlpShape mlp{.width = shape.width, .hidden = shape.hidden, .outputs = shape.outputs};
  if (kind == "mlp") {
    const auto o = settings_in<MlpExpertsOptions>(resolved, "experts");
    mlp.depth = o.depth, mlp.bias = o.bias;
    return mlp_cost(mlp);
  }
  if (kind == "swiglu") {
    mlp.bias = settings_in<SwigluExpertsOptions>(resolved, "experts").bias, mlp.gated = true;
    return mlp_cost(mlp);
  }
  if (kind == "linear")
    return linear_cost(shape.width, shape.output_width(), settings_in<LinearExpertsOptions>(resolved, "experts").bias);
  if (kind == "conv") {
    const auto o = settings_in<ConvExpertsOptions>(resolved, "experts");
    const PatchShape patch = square_patch(o.channels, shape.width);
    const PatchKernel kernel = o.kernel_for(patch);
    const Cost filters =
        on_units(conv_cost({patch.channels, shape.hidden, kernel.side, o.bias}), kernel_places(patch, kernel));
    return o.output == "trained" ? filters + linear_cost(shape.hidden, shape.output_width(), false) : filters;
  }
  fail_usage("the cost of an MoE layer is counted with experts mlp, swiglu, linear and conv, not with experts ", kind);
}

std::vector<PartCost> moe_cost(const Json& resolved, const MoePlace& place, int64_t tokens) {
  const MoeSpec spec = read_moe_spec(resolved);
  const MoeOptions& moe = spec.options;
  const RouterUse use = router_use(resolved, {place.width, moe.experts, tokens});
  spec.make_router({place.width, moe.experts});  // says where its settings do not fit
  const auto expert = [&](int64_t hidden) { return expert_cost(resolved, {1, place.width, hidden, place.outputs}); };
  std::vector<PartCost> parts{
      {place.path + ".router", use.router},
      {place.path + ".experts", experts_cost(expert(moe.hidden_for(place.mlp_hidden)), moe.experts, use.rows)}};
  if (moe.shared > 0) {
    const Cost shared = on_units(expert(moe.shared_hidden_for(place.mlp_hidden)), tokens);
    parts.push_back({place.path + ".shared", copies(shared, moe.shared)});
  }
  return parts;
}

}  // namespace sparsight
