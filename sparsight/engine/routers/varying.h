// Routers that give tokens different numbers of experts: top_p and relu of moe/routers/ in evaluation.
#pragma once

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

// The most probable experts until their probabilities sum to p, at most `maximum` of them.
class TopPRouter final : public Router {
 public:
  TopPRouter() = default;
  TopPRouter(RouterLogits logits, double p, int64_t maximum) : logits_(std::move(logits)), p_(p), maximum_(maximum) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "top p"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
  double p_ = 1;
  int64_t maximum_ = 1;
};

// The experts with positive logits, which are the gates.
class ReluRouter final : public Router {
 public:
  ReluRouter() = default;
  explicit ReluRouter(RouterLogits logits) : logits_(std::move(logits)) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "relu"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
};

}  // namespace sparsight::engine
