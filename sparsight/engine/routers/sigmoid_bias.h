// The router of DeepSeek-V3 in evaluation: sigmoid_bias of moe/routers/.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

struct SigmoidBiasRule {
  int64_t k = 1;
  double scale = 1;              // sum of a token's gates
  int64_t groups = 1, kept = 1;  // equal groups of experts, of which a token may use `kept`
};

class SigmoidBiasRouter final : public Router {
 public:
  SigmoidBiasRouter() = default;
  // bias: [E]
  SigmoidBiasRouter(RouterLogits logits, std::vector<float> bias, const SigmoidBiasRule& rule)
      : logits_(std::move(logits)), bias_(std::move(bias)), rule_(rule) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "sigmoid bias"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes() + 4 * experts(); }

 private:
  void limit(cpu::Threads& threads, float* biased, int64_t tokens) const;
  std::string export_limit(OnnxGraph& graph, const std::string& biased, int64_t tokens) const;

  RouterLogits logits_;
  std::vector<float> bias_;
  SigmoidBiasRule rule_;
};

}  // namespace sparsight::engine
