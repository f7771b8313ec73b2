// Steps on feature maps, channels last, and from maps or tokens to the vector that the head sees.
#pragma once

#include <vector>

#include "sparsight/engine/conv_chain.h"
#include "sparsight/engine/program_builder.h"

namespace sparsight::engine {

class ConvolveStep final : public Step {
 public:
  ConvolveStep() = default;
  ConvolveStep(Value from, Value to, ConvChain convs) : Step(to), from_(from), convs_(std::move(convs)) {}
  const char* kind() const override { return "convolve"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return convs_.bytes(); }

 private:
  Value from_;
  ConvChain convs_;
};

// Appends convolutions in a row from map to map.
Value add_convs(ProgramBuilder& builder, Value from, std::vector<ConvStep> convs);

// The maximum of 3 x 3 positions, with stride 2 and one position of padding on each edge.
class MaxPoolStep final : public Step {
 public:
  MaxPoolStep() = default;
  MaxPoolStep(Value from, Value to) : Step(to), from_(from) {}
  const char* kind() const override { return "max pool"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
};

inline Value add_max_pool(ProgramBuilder& builder, Value from) {
  const Shape& in = from.shape;
  return builder.add<MaxPoolStep>(
      from, builder.new_value({.height = (in.height + 1) / 2, .width = (in.width + 1) / 2, .columns = in.columns}));
}

// The maximum of each `side` x `side` window; rows and columns beyond the last whole window are left out.
class WindowMaxStep final : public Step {
 public:
  WindowMaxStep() = default;
  WindowMaxStep(Value from, Value to, int64_t side) : Step(to), from_(from), side_(side) {}
  const char* kind() const override { return "max of windows"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  int64_t side_ = 1;
};

inline Value add_window_max(ProgramBuilder& builder, Value from, int64_t side) {
  const Shape& in = from.shape;
  const Shape out{.height = in.height / side, .width = in.width / side, .columns = in.columns};
  return builder.add<WindowMaxStep>(from, builder.new_value(out), side);
}

// Square patches of a map as tokens, each in the order (channel, row, column); and patches as a map again.
class MapPatchesStep final : public Step {
 public:
  MapPatchesStep() = default;
  // Exactly one of `from` and `to` is a map; the other has its patches as rows.
  MapPatchesStep(Value from, Value to, int64_t side, bool to_patches)
      : Step(to), from_(from), side_(side), to_patches_(to_patches) {}
  const char* kind() const override { return to_patches_ ? "map to patches" : "patches to map"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  int64_t side_ = 1;
  bool to_patches_ = false;
};

// The first rows of each image as one vector, as many as fill it, or the mean of its rows without the prefix.
class PoolStep final : public Step {
 public:
  PoolStep() = default;
  enum class Pool { first, mean };
  PoolStep(Value from, Value to, Pool pool) : Step(to), from_(from), pool_(pool) {}
  const char* kind() const override { return "pool"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  Pool pool_ = Pool::first;
};

// Appends the mean of an image's rows without the prefix.
inline Value add_mean(ProgramBuilder& builder, Value from) {
  return builder.add<PoolStep>(from, builder.new_value(Shape::vector(from.shape.columns)), PoolStep::Pool::mean);
}

// The sum of an image's rows divided by the mean number of assignments per expert, at least 1: pMoE's 1/l.
class TakenMeanStep final : public Step {
 public:
  TakenMeanStep() = default;
  TakenMeanStep(Value from, Value to, int64_t routing) : Step(to), from_(from), routing_(routing) {}
  const char* kind() const override { return "mean of patches taken"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
  int64_t routing_ = 0;
};

// Logits (0, f) of two classes from one output f.
class TwoClassStep final : public Step {
 public:
  TwoClassStep() = default;
  TwoClassStep(Value from, Value to) : Step(to), from_(from) {}
  const char* kind() const override { return "two classes"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;

 private:
  Value from_;
};

inline Value add_two_classes(ProgramBuilder& builder, Value from) {
  return builder.add<TwoClassStep>(from, builder.new_value(Shape::vector(2)));
}

}  // namespace sparsight::engine
