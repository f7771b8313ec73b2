// The first steps: pixels to what the model sees. Pixels of an image are C H rows of W numbers, planes one after the
// other.
#pragma once

#include <vector>

#include "sparsight/engine/step.h"

namespace sparsight::engine {

// (x - mean) / std of each channel, to planes again or to a map (channels last).
class NormalizeStep final : public Step {
 public:
  NormalizeStep() = default;
  // mean, std: [C], or empty for pixels as they are. from: planes of `channels`.
  NormalizeStep(Value from, Value to, int64_t channels, const std::vector<double>& mean, const std::vector<double>& std,
                bool to_map);
  const char* kind() const override { return "normalize"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  int64_t channels_ = 1;
  std::vector<float> scale_, shift_;  // 255 x scale + shift; empty: x
  bool to_map_ = false;
};

// Square patches as tokens, each in the order (channel, row, column). from: planes of `channels`.
class PatchesStep final : public Step {
 public:
  PatchesStep() = default;
  PatchesStep(Value from, Value to, int64_t channels, int64_t side)
      : Step(to), from_(from), channels_(channels), side_(side) {}
  const char* kind() const override { return "patches"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  int64_t channels_ = 1, side_ = 1;
};

}  // namespace sparsight::engine
