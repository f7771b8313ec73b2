#include "sparsight/engine/steps/route.h"

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/file/kinds.h"
#include "sparsight/engine/onnx/onnx_capacity.h"
#include "sparsight/engine/onnx/onnx_export.h"

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

void RouteStep::visit_fields(Fields& fields) {
  fields.text("layer", layer_);
  fields.value("tokens", tokens_);
  fields.part("router", [&] { visit_kind(fields, router_kinds(), router_, tokens_.shape); });
  OptionSet capacity;
  policy_.capacity.declare(capacity);
  fields.options("capacity", capacity);
  fields.real("capacity_factor", policy_.factor, {0, kMaxFieldNumber});
  fields.choice("gates", policy_.gates, std::array{"router", "sum_to_one", "one"});
  fields.decides("number", number_, tokens_.shape.rows(), router_->experts());
}

void RouteStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const OnnxTokens tokens{onnx.rows(tokens_), onnx.images(), tokens_.shape};
  OnnxRouting routing = router_->export_onnx(graph, tokens);
  routing.tokens = tokens_.shape.rows(), routing.gathers_rows = onnx.gathers_rows;
  if (routing.slots == 0) {
    const OnnxName kept = apply_capacity(graph, policy_.capacity, policy_.factor, tokens, routing);
    apply_gate_rule(graph, policy_.gates, routing);
    if (!kept.empty()) drop_choices(graph, kept, routing);
  }
  onnx.routings[number_] = routing;
}

}  // namespace sparsight::engine
