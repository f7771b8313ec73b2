#include "sparsight/moe/moe_layer.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch.h"

namespace sparsight {

MoeLayer::MoeLayer(const MoeSpec& spec, const MoePlace& place)
    : path_(place.path),
      router_(register_module("router", spec.make_router({place.width, spec.options.experts}))),
      experts_(register_module("experts", spec.make_experts(place.width, place.mlp_hidden))),
      losses_(spec.losses) {}

MoeOutput MoeLayer::forward(const at::Tensor& tokens, const TokenLayout& layout, const StepRandom& random) {
  SPARSIGHT_CHECK(tokens.dim() == 2 && tokens.size(0) == layout.images * layout.per_image);
  MoeOutput out;
  out.routing = router_->route({tokens, layout, path_, random});
  out.routing.layer = path_;
  out.routing.layout = layout;
  out.tokens = run_experts(tokens, out.routing, *experts_);
  if (is_training()) out.losses = compute_losses(out.routing, losses_);
  return out;
}

}  // namespace sparsight
