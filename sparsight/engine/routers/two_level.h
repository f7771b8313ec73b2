// Routers of two levels, which choose groups of experts and then experts in each: hierarchical and
// balanced_hierarchical of moe/routers/ in evaluation.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/router.h"
#include "sparsight/engine/routers/logits.h"

namespace sparsight::engine {

// How a level chooses: the best k, whose gates are the softmax over the chosen; or, with k = 0, those above thresholds
// (ThresholdRouter).
struct LevelRule {
  int64_t k = 0;
  std::vector<float> threshold{};  // [choices of the level]
};

class TwoLevelRouter final : public Router {
 public:
  TwoLevelRouter() = default;
  // primary: logits of the G groups; secondary: of all E experts, of which group i has i E/G .. (i+1) E/G.
  // sorted: a token's choices are sorted by gate (hierarchical), else they stay in the order of the groups.
  TwoLevelRouter(LinearMap primary, LinearMap secondary, LevelRule groups, LevelRule experts, bool sorted)
      : primary_(std::move(primary)),
        secondary_(std::move(secondary)),
        groups_(std::move(groups)),
        experts_(std::move(experts)),
        sorted_(sorted) {}

  int64_t experts() const override { return secondary_.outputs(); }
  void choose(const RouterInput& input, Routing& routing) const override;
  const char* kind() const override { return "two levels"; }
  void visit(Fields& fields, const Shape& tokens) override;
  OnnxRouting export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const override;
  int64_t bytes() const override { return primary_.bytes() + secondary_.bytes(); }

 private:
  OnnxRouting export_sorted(OnnxGraph& graph, const std::string& primary, const std::string& secondary,
                            int64_t tokens) const;

  LinearMap primary_, secondary_;
  LevelRule groups_, experts_;
  bool sorted_ = false;
};

}  // namespace sparsight::engine
