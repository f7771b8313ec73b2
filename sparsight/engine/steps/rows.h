// Steps that treat each row of a value by itself: layer norm, linear layers, elementwise functions.
#pragma once

#include <optional>
#include <vector>

#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/transformer_block.h"

namespace sparsight::engine {

class NormStep final : public Step {
 public:
  NormStep() = default;
  NormStep(Value from, Value to, Norm norm) : Step(to), from_(from), norm_(std::move(norm)) {}
  const char* kind() const override { return "norm"; }
  std::vector<Value> reads() const override { return {from_}; }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return 8 * static_cast<int64_t>(norm_.weight.size()); }

 private:
  Value from_;
  Norm norm_;
};

class LinearStep final : public Step {
 public:
  LinearStep() = default;
  // from: rows as wide as the layer's inputs, or values of as many numbers, as one row. to = activation(from W + b), or
  // residual + that.
  LinearStep(Value from, Value residual, Value to, cpu::PackedLinear linear, std::optional<Activation> activation = {})
      : Step(to), from_(from), residual_(residual), linear_(std::move(linear)), activation_(activation) {}
  const char* kind() const override { return "linear"; }
  std::vector<Value> reads() const override { return existing(from_, residual_); }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return linear_.bytes() + 4 * linear_.outputs(); }

 private:
  Value from_, residual_;
  cpu::PackedLinear linear_;
  std::optional<Activation> activation_;
};

// Appends a linear layer from a vector to a vector.
inline Value add_linear(ProgramBuilder& builder, Value from, cpu::PackedLinear linear) {
  const Value to = builder.new_value(Shape::vector(linear.outputs()));
  return builder.add<LinearStep>(from, Value{}, to, std::move(linear));
}

enum class Elementwise { identity, relu, sigmoid, tanh };

// to = f(residual + factor * from + shift).
class ElementwiseStep final : public Step {
 public:
  ElementwiseStep() = default;
  // residual: none for 0. factor, shift: [columns], or empty for ones and zeros.
  ElementwiseStep(Value from, Value residual, Value to, Elementwise function, std::vector<float> factor = {},
                  std::vector<float> shift = {})
      : Step(to),
        from_(from),
        residual_(residual),
        function_(function),
        factor_(std::move(factor)),
        shift_(std::move(shift)) {}
  const char* kind() const override { return "elementwise"; }
  std::vector<Value> reads() const override { return existing(from_, residual_); }
  void run(Frame& frame) const override;
  void visit_fields(Fields& fields) override;
  void export_onnx(OnnxExport& onnx) const override;
  int64_t bytes() const override { return 4 * static_cast<int64_t>(factor_.size() + shift_.size()); }

 private:
  Value from_, residual_;
  Elementwise function_ = Elementwise::identity;
  std::vector<float> factor_, shift_;
};

}  // namespace sparsight::engine
