#include "sparsight/moe/moe_layer.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch.h"
#include "sparsight/moe/shared_experts.h"
#include "sparsight/moe/soft_dispatch.h"

namespace sparsight {

MoeLayer::MoeLayer(const MoeSpec& spec, const MoePlace& place)
    : path_(place.path),
      width_(place.width),
      router_(register_module("router", spec.make_router({place.width, spec.options.experts}))),
      experts_(register_module("experts", spec.make_experts(place.width, place.mlp_hidden, place.outputs))),
      shared_(spec.make_shared_experts(place.width, place.mlp_hidden, place.outputs)),
      shared_count_(spec.options.shared),
      output_sigmoid_(spec.options.output_sigmoid),
      capacity_(spec.capacity),
      losses_(with_paper_weights(spec.losses, router_->paper_losses())) {
  if (shared_) register_module("shared", shared_);
}

bool MoeLayer::pack_experts(WeightType type) {
  const auto replace = [&](const char* name, std::shared_ptr<Experts>& experts) {
    const std::shared_ptr<Experts> packed = experts->packed(type);
    if (packed) experts = replace_module(name, packed);
    return packed != nullptr;
  };
  if (shared_) replace("shared", shared_);
  return replace("experts", experts_);
}

std::optional<ExpertRandom> MoeLayer::expert_random(const char* name, const StepRandom& random,
                                                    const PoolInfo& pool) const {
  if (!is_training()) return std::nullopt;
  return ExpertRandom{random, path_ + "." + name, pool.first_token};
}

at::Tensor MoeLayer::finish(at::Tensor routed, const at::Tensor& tokens, const StepRandom& random,
                            const PoolInfo& pool) {
  if (!shared_ && !output_sigmoid_) return routed;
  const at::Tensor padding = pool.valid.defined() ? pool.valid.logical_not().unsqueeze(1) : at::Tensor();
  // What lies in padding may be NaN, which must not reach the weights' gradients.
  const auto cleared = [&](const at::Tensor& x) { return padding.defined() ? x.masked_fill(padding, 0) : x; };
  if (shared_)
    routed =
        routed + run_shared_experts(cleared(tokens), *shared_, shared_count_, expert_random("shared", random, pool));
  return cleared(output_sigmoid_ ? at::sigmoid(routed) : routed);
}

MoeOutput MoeLayer::forward(const at::Tensor& tokens, const TokenLayout& layout, const StepRandom& random,
                            const PoolInfo& pool) {
  if (tokens.dim() != 2 || tokens.size(1) != width_)
    fail("the MoE layer ", path_, " takes tokens [N, ", width_, "], got ", tokens.sizes());
  if (tokens.size(0) != layout.images * layout.per_image)
    fail("the MoE layer ", path_, " got ", tokens.size(0), " tokens for a layout of ", layout.images, " images of ",
         layout.per_image, " tokens");
  const RouterInput input{
      tokens, layout, path_, random, pool, group_tokens(capacity_, layout), losses_.variants.threshold_gradient};
  const std::optional<ExpertRandom> drawing = expert_random("experts", random, pool);
  MoeOutput out;
  if (auto* soft = dynamic_cast<SoftRouter*>(router_.get())) {
    out.soft = soft->mix(input);
    out.tokens = finish(run_soft_experts(tokens, *out.soft, *experts_, drawing), tokens, random, pool);
    return out;
  }
  out.routing = router_->route(input);
  if (is_training()) out.losses = compute_losses(out.routing, losses_);  // of gates before drops
  apply_capacity(out.routing, capacity_, capacity_factor(capacity_, is_training()));
  out.tokens = finish(run_experts(tokens, out.routing, *experts_, drawing), tokens, random, pool);
  return out;
}

namespace {

template <class Visit>
void for_each_layer(const torch::nn::Module& model, const Visit& visit) {
  // The root apart: listing it among the modules would need it in a shared pointer.
  if (auto* layer = dynamic_cast<const MoeLayer*>(&model)) visit(const_cast<MoeLayer&>(*layer));
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* layer = dynamic_cast<MoeLayer*>(module.get())) visit(*layer);
}

}  // namespace

int64_t pack_experts(torch::nn::Module& model, WeightType type) {
  const torch::NoGradGuard no_grad;
  int64_t layers = 0;
  for_each_layer(model, [&](MoeLayer& layer) { layers += layer.pack_experts(type) ? 1 : 0; });
  return layers;
}

bool learns_from_routings(const torch::nn::Module& model) {
  bool learns = false;
  for_each_layer(model, [&](MoeLayer& layer) { learns = learns || layer.router().learns_from_routings(); });
  return learns;
}

void after_step(torch::nn::Module& model, const std::vector<Routing>& routings) {
  const torch::NoGradGuard no_grad;
  for_each_layer(model, [&](MoeLayer& layer) {
    if (!layer.router().learns_from_routings()) return;
    std::vector<Routing> of_layer;
    for (const Routing& routing : routings)
      if (routing.layer == layer.path()) of_layer.push_back(routing);
    layer.router().after_step(of_layer);
  });
}

}  // namespace sparsight
