// The decision of a router about the tokens of a batch, with capacity and the rule of gates.
#pragma once

#include <memory>

#include "sparsight/engine/capacity.h"
#include "sparsight/engine/gate_rule.h"
#include "sparsight/engine/router.h"
#include "sparsight/engine/step.h"

namespace sparsight::engine {

struct RoutePolicy {
  CapacityOptions capacity;  // whose factor is that of evaluation
  double factor = 0;
  GateRule gates = GateRule::router;
};

class RouteStep final : public Step {
 public:
  RouteStep() = default;
  // number: of the decision in Frame::routing. layer: "blocks.3.mlp", or "router" of the whole model.
  RouteStep(std::string layer, int64_t number, Value tokens, std::unique_ptr<Router> router, RoutePolicy policy)
      : Step(Value{}),
        layer_(std::move(layer)),
        number_(number),
        tokens_(tokens),
        router_(std::move(router)),
        policy_(std::move(policy)) {}

  const char* kind() const override { return "route"; }
  std::vector<Value> reads() const override { return {tokens_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return router_->bytes(); }

  const std::string& layer() const { return layer_; }
  int64_t number() const { return number_; }
  const Router& router() const { return *router_; }
  // The complete decision about tokens of this layout.
  void decide(const RouterInput& input, const TokenLayout& layout, Routing& routing) const;

 private:
  std::string layer_;
  int64_t number_ = 0;
  Value tokens_;
  std::unique_ptr<Router> router_;
  RoutePolicy policy_;
};

}  // namespace sparsight::engine
