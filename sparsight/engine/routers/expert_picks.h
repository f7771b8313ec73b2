// Routers whose experts choose tokens: expert_choice, patch_choice and balanced_batchwise of moe/routers/ in
// evaluation. Assignments are in the order of the experts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

// The share of a pool's tokens that each expert takes, a little less so that rounding up takes no token for an error of
// the last bit.
double share_of_expert(int64_t experts, double experts_per_token);
// How many tokens of a pool of `tokens` each expert takes on average share: ceil(experts_per_token * tokens / E), at
// least one and at most all.
int64_t tokens_of_expert(int64_t tokens, int64_t experts, double experts_per_token);

// Each expert takes its best tokens of the batch, or of each image, by the softmax over the experts, which is the gate.
class ExpertChoiceRouter final : public Router {
 public:
  ExpertChoiceRouter() = default;
  ExpertChoiceRouter(RouterLogits logits, double experts_per_token, bool by_image)
      : logits_(std::move(logits)), experts_per_token_(experts_per_token), by_image_(by_image) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "expert choice"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
  double experts_per_token_ = 1;
  bool by_image_ = false;
};

// Raises UsageError where an expert would take more patches than an image has.
void check_patches(int64_t taken, int64_t patches);

// pMoE: each expert takes `patches` of each image by logit.
class PatchChoiceRouter final : public Router {
 public:
  PatchChoiceRouter() = default;
  enum class PatchGates { topl_softmax, softmax_topl, ones };
  PatchChoiceRouter(RouterLogits logits, int64_t patches, PatchGates gates)
      : logits_(std::move(logits)), patches_(patches), gates_(gates) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "patch choice"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
  int64_t patches_ = 1;
  PatchGates gates_ = PatchGates::topl_softmax;
};

// Each expert takes the tokens whose probability is above its threshold. A token's gates are the softmax of the logits
// over the experts that took it.
class ThresholdRouter final : public Router {
 public:
  ThresholdRouter() = default;
  // threshold: [E]
  ThresholdRouter(RouterLogits logits, std::vector<float> threshold)
      : logits_(std::move(logits)), threshold_(std::move(threshold)) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "threshold"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return logits_.bytes() + 4 * experts(); }

 private:
  RouterLogits logits_;
  std::vector<float> threshold_;
};

// The decision of ThresholdRouter for given logits, routing.logits.
void choose_above_threshold(cpu::Threads& threads, const float* threshold, Routing& routing);
// The same in a graph: whether an expert takes a token, and its gate, of logits [...,E] and thresholds that broadcast.
std::pair<std::string, std::string> export_above_threshold(OnnxGraph& graph, const std::string& logits,
                                                           const std::string& threshold);

}  // namespace sparsight::engine
