// Routers whose experts choose tokens: expert_choice, patch_choice and balanced_batchwise of moe/routers/ in
// evaluation. Assignments are in the order of the experts.
#pragma once

#include <vector>

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

// How many tokens of a pool of `tokens` each expert takes on average share: ceil(experts_per_token * tokens / E), at
// least one and at most all.
int64_t tokens_of_expert(int64_t tokens, int64_t experts, double experts_per_token);

// Each expert takes its best tokens of the batch, or of each image, by the softmax over the experts, which is the gate.
class ExpertChoiceRouter final : public Router {
 public:
  ExpertChoiceRouter(RouterLogits logits, double experts_per_token, bool by_image)
      : logits_(std::move(logits)), experts_per_token_(experts_per_token), by_image_(by_image) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
  double experts_per_token_;
  bool by_image_;
};

// Raises UsageError where an expert would take more patches than an image has. setting: the key in [router] of `taken`.
void check_patches(const char* setting, int64_t taken, int64_t patches);

// pMoE: each expert takes `patches` of each image by logit.
class PatchChoiceRouter final : public Router {
 public:
  enum class PatchGates { topl_softmax, softmax_topl, ones };
  // setting: as for check_patches().
  PatchChoiceRouter(RouterLogits logits, const char* setting, int64_t patches, PatchGates gates)
      : logits_(std::move(logits)), setting_(setting), patches_(patches), gates_(gates) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  int64_t bytes() const override { return logits_.bytes(); }

 private:
  RouterLogits logits_;
  const char* setting_;
  int64_t patches_;
  PatchGates gates_;
};

// Each expert takes the tokens whose probability is above its threshold. A token's gates are the softmax of the logits
// over the experts that took it.
class ThresholdRouter final : public Router {
 public:
  // threshold: [E]
  ThresholdRouter(RouterLogits logits, std::vector<float> threshold)
      : logits_(std::move(logits)), threshold_(std::move(threshold)) {}
  int64_t experts() const override { return logits_.experts(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  int64_t bytes() const override { return logits_.bytes() + 4 * experts(); }

 private:
  RouterLogits logits_;
  std::vector<float> threshold_;
};

// The decision of ThresholdRouter for given logits, routing.logits.
void choose_above_threshold(cpu::Threads& threads, const float* threshold, Routing& routing);

}  // namespace sparsight::engine
