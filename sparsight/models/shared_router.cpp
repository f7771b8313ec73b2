#include "sparsight/models/shared_router.h"

#include "sparsight/moe/validate_router.h"

namespace sparsight {

const std::string SharedRouter::kName = "router";

SharedRouter::SharedRouter(torch::nn::Module& owner, const MoeSpec& spec, int64_t width,
                           std::vector<std::string> layers)
    : policy_{spec.capacity, spec.losses, spec.options.gate_rule()}, layers_(std::move(layers)) {
  if (!spec.shares_router() || layers_.empty()) return;
  router_ = owner.register_module(kName, spec.make_router({width, spec.options.experts}));
  policy_.losses = with_router_weights(spec.losses, *router_, kName);
}

void SharedRouter::compile(engine::ProgramBuilder& builder, engine::Value tokens) const {
  builder.share_routing(add_route(builder, kName, tokens, *router_, policy_), layers_);
}

ModelInput SharedRouter::decide(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out) {
  layout.images = x.size(0);
  layout.per_image = x.size(1);
  const auto given = input.routings.find(kName);
  const Routing routing = given != input.routings.end()
                              ? given->second
                              : route_tokens(*router_,
                                             {x.reshape({-1, x.size(2)}), layout, kName, input.mode, input.random,
                                              routing_context(input.info, layout)},
                                             policy_);
  append_routing(routing, out);
  ModelInput decided = input;
  for (const std::string& layer : layers_) decided.routings.emplace(layer, routing);
  return decided;
}

}  // namespace sparsight
