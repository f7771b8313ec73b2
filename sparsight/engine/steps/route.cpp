#include "sparsight/engine/steps/route.h"

namespace sparsight::engine {

void RouteStep::decide(const RouterInput& input, const TokenLayout& layout, Routing& routing) const {
  routing.start(layout, router_->experts());
  router_->choose(input, routing);
  if (routing.mixes_tokens()) return;
  if (!apply_capacity(routing, policy_.capacity, policy_.factor, input.image, input.group)) routing.keep_all();
  apply_gate_rule(routing, policy_.gates);
}

void RouteStep::run(Frame& frame) const {
  const Shape& shape = tokens_.shape;
  decide({frame.threads(), frame.read(tokens_), frame.image_numbers(), frame.image_groups()},
         {.images = frame.images(),
          .per_image = shape.rows(),
          .prefix = shape.prefix,
          .grid_height = shape.has_grid ? shape.height : 0,
          .grid_width = shape.has_grid ? shape.width : 0},
         frame.routing(number_));
}

}  // namespace sparsight::engine
