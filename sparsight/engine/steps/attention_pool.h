// One query, the same for all images, attends to the patches of each, not to the prefix: nn/attention_pool.h.
#pragma once

#include <utility>
#include <vector>

#include "sparsight/engine/step.h"

namespace sparsight::engine {

class AttentionPoolStep final : public Step {
 public:
  AttentionPoolStep() = default;
  // from: keys and values of each token, [S,2D]; to: [D]. query: [D].
  AttentionPoolStep(Value from, Value to, std::vector<float> query, int64_t heads)
      : Step(to), from_(from), query_(std::move(query)), heads_(heads) {}
  const char* kind() const override { return "attention pool"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return 4 * static_cast<int64_t>(query_.size()); }

 private:
  Value from_;
  std::vector<float> query_;
  int64_t heads_ = 1;
};

}  // namespace sparsight::engine
