#include "sparsight/moe/moe_layer.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/moe/dispatch/expert_parallel.h"
#include "sparsight/moe/shared_experts.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {

MoeLayer::MoeLayer(const MoeSpec& spec, const LayerContext& context)
    : path_(context.path),
      width_(context.width),
      expert_count_(spec.options.experts),
      outputs_(context.outputs > 0 ? context.outputs : context.width),
      router_(make_own_router(spec, context)),
      experts_(register_module("experts", spec.make_experts(context.width, context.mlp_hidden, context.outputs))),
      shared_(spec.make_shared_experts(context.width, context.mlp_hidden, context.outputs)),
      dispatcher_(spec.dispatcher),
      ranks_(spec.ranks),
      shared_count_(spec.options.shared),
      output_sigmoid_(spec.options.output_sigmoid),
      policy_{spec.capacity, spec.losses, spec.options.gate_rule()} {
  if (ranks_.parts->size() > 1) check_can_spread(*experts_, path_);
  if (shared_) register_module("shared", shared_);
  if (router_) policy_.losses = with_router_weights(spec.losses, *router_, path_);
}

std::shared_ptr<Router> MoeLayer::make_own_router(const MoeSpec& spec, const LayerContext& context) {
  if (!context.can_share_router && spec.router.scope == "model")
    fail_usage(
        "[router] scope = \"model\" is for models with blocks, and this one has a router in each of its layers; remove "
        "router.scope");
  if (context.can_share_router && spec.shares_router()) return nullptr;
  return register_module("router", spec.make_router({context.width, spec.options.experts}));
}

ExpertContext MoeLayer::expert_context(const char* name, const MoeInput& input) const {
  return {input.mode, input.random, path_ + "." + name, input.context.image};
}

at::Tensor MoeLayer::finish(at::Tensor routed, const MoeInput& input) {
  const at::Tensor& valid = input.context.valid;
  if (!shared_ && !output_sigmoid_ && !valid.defined()) return routed;
  const at::Tensor padding = valid.defined() ? valid.logical_not().unsqueeze(1) : at::Tensor();
  // Padding may be NaN, which must not reach the weights' gradients.
  const auto cleared = [&](const at::Tensor& x) { return padding.defined() ? x.masked_fill(padding, 0) : x; };
  if (shared_)
    routed = routed + run_shared_experts(cleared(input.tokens), *shared_, shared_count_, input.layout,
                                         expert_context("shared", input));
  return cleared(output_sigmoid_ ? at::sigmoid(routed) : routed);
}

void MoeLayer::check(const MoeInput& input) const {
  const at::Tensor& tokens = input.tokens;
  const TokenLayout& layout = input.layout;
  if (tokens.dim() != 2 || tokens.size(1) != width_)
    fail("the MoE layer ", path_, " takes tokens [N, ", width_, "], got ", tokens.sizes());
  if (tokens.size(0) != layout.images * layout.per_image)
    fail("the MoE layer ", path_, " got ", tokens.size(0), " tokens for a layout of ", layout.images, " images of ",
         layout.per_image, " tokens");
}

Routing MoeLayer::route(const MoeInput& input) {
  check(input);
  if (!router_)
    fail("the MoE layer ", path_, " has no router of its own, since the model's decides for it; give it a routing");
  return route_tokens(*router_, {input.tokens, input.layout, path_, input.mode, input.random, input.context}, policy_);
}

at::Tensor MoeLayer::apply(const MoeInput& input, const Routing& routing) {
  check(input);
  if (routing.tokens != input.tokens.size(0) || routing.experts != expert_count_)
    fail("the MoE layer ", path_, " has ", input.tokens.size(0), " tokens and ", expert_count_,
         " experts, but the routing has ", routing.tokens, " tokens and ", routing.experts, " experts");
  const TokenLayout &own = input.layout, &given = routing.layout;
  if (routing.soft && (given.images != own.images || given.per_image != own.per_image))
    fail("the MoE layer ", path_, " has ", own.images, " images of ", own.per_image,
         " tokens, but the soft routing has ", given.images, " images of ", given.per_image, " tokens");
  return finish(dispatcher_->run(input.tokens, routing, *experts_, expert_context("experts", input)), input);
}

MoeOutput MoeLayer::forward(const MoeInput& input) {
  MoeOutput out;
  out.routing = route(input);
  out.tokens = apply(input, out.routing);
  return out;
}

engine::Value MoeLayer::compile(engine::ProgramBuilder& builder, engine::Value tokens, engine::Value residual,
                                const at::Tensor& factor, std::optional<int64_t> read) const {
  const int64_t routing = router_ ? add_route(builder, path_, tokens, *router_, policy_) : builder.find_routing(path_);
  engine::Shape out = tokens.shape;
  out.columns = outputs_;
  const engine::Value none;
  const bool plain = !output_sigmoid_ && !factor.defined();
  engine::Value y =
      builder.add<engine::ExpertsStep>(path_, routing, tokens, plain ? residual : none, builder.new_value(out),
                                       experts_->compile(builder.form()), read.value_or(out.rows()));
  if (shared_)
    y = builder.add<engine::SharedExpertsStep>(tokens, y, builder.new_value(out), shared_->compile(builder.form()));
  if (output_sigmoid_)
    y = builder.add<engine::ElementwiseStep>(y, none, builder.new_value(out), engine::Elementwise::sigmoid);
  if (plain || (!residual.exists() && !factor.defined())) return y;
  return builder.add<engine::ElementwiseStep>(y, residual, builder.new_value(out), engine::Elementwise::identity,
                                              to_floats(factor));
}

namespace {

template <class Wanted, class Visit>
void for_each(const torch::nn::Module& model, const Visit& visit) {
  // The root separately: modules() can include it only if a shared pointer owns it.
  if (auto* found = dynamic_cast<const Wanted*>(&model)) visit(const_cast<Wanted&>(*found));
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* found = dynamic_cast<Wanted*>(module.get())) visit(*found);
}

// Calls visit(router, name of its routings).
template <class Visit>
void for_each_router(const torch::nn::Module& model, const Visit& visit) {
  for_each_router_owner(model, [&](HasRouter& owner) { visit(*owner.own_router(), owner.routing_name()); });
}

}  // namespace

void for_each_router_owner(const torch::nn::Module& model, const std::function<void(HasRouter&)>& visit) {
  for_each<HasRouter>(model, [&](HasRouter& owner) {
    if (owner.own_router()) visit(owner);
  });
}

void HasRouter::declare_settings(const std::function<void(const std::string& section, OptionSet& set)>& visit) {
  if (!own_router()) return;
  OptionSet router, capacity, losses;
  own_router()->declare(router);
  visit("router", router);
  policy().capacity.declare(capacity);
  visit("capacity", capacity);
  policy().losses.declare(losses);
  visit("losses", losses);
}

bool needs_post_step_update(const torch::nn::Module& model) {
  bool learns = false;
  for_each_router(model, [&](Router& router, const auto&) { learns = learns || router.needs_post_step_update(); });
  return learns;
}

void post_step_update(torch::nn::Module& model, const std::vector<Routing>& routings) {
  const torch::NoGradGuard no_grad;
  for_each_router(model, [&](Router& router, const std::string& name) {
    if (!router.needs_post_step_update()) return;
    std::vector<Routing> own;
    for (const Routing& routing : routings)
      if (routing.layer == name) own.push_back(routing);
    call_router(router, name, "post_step_update", [&] { router.post_step_update(own); });
  });
}

}  // namespace sparsight
