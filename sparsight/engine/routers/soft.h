// The router of Soft MoE: every slot of an expert takes a weighted mean of an image's tokens, every token a weighted
// mean of the slots' outputs (soft_moe of moe/routers/). Letters: moe/axes.md; P = E * slots.
#pragma once

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

class SoftRouter final : public Router {
 public:
  SoftRouter() = default;
  // map: D -> P. normalises: tokens are divided by their norms first.
  SoftRouter(LinearMap map, int64_t experts, bool normalises)
      : map_(std::move(map)), experts_(experts), normalises_(normalises) {}
  int64_t experts() const override { return experts_; }
  // Sets logits, scores (the weights of tokens in slots), combine and slots.
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "soft"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return map_.bytes(); }

 private:
  LinearMap map_;
  int64_t experts_ = 1;
  bool normalises_ = false;
};

}  // namespace sparsight::engine
