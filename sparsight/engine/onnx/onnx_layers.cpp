#include "sparsight/engine/onnx/onnx_layers.h"

#include <bit>
#include <cstring>

#include "sparsight/core/error.h"
#include "sparsight/engine/transformer_block.h"

namespace sparsight::engine {
namespace {

// [rows,columns] of numbers of `size` bytes -> [columns,rows].
std::vector<uint8_t> transposed_bytes(const void* from, int64_t rows, int64_t columns, int64_t size) {
  std::vector<uint8_t> to(static_cast<size_t>(rows * columns * size));
  const auto* const bytes = static_cast<const uint8_t*>(from);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to.data() + (c * rows + r) * size, bytes + (r * columns + c) * size, static_cast<size_t>(size));
  return to;
}

}  // namespace

std::vector<float> as_floats(const cpu::MatrixView& matrix) {
  std::vector<float> numbers(static_cast<size_t>(matrix.rows * matrix.columns));
  SPARSIGHT_CHECK(matrix.type != WeightType::int8);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = matrix.type == WeightType::fp32
                     ? static_cast<const float*>(matrix.data)[i]
                     : std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(matrix.data)[i]) << 16);
  return numbers;
}

OnnxName onnx_weight(OnnxGraph& graph, const std::string& name, const cpu::MatrixView& matrix,
                     const std::vector<int64_t>& dims, int64_t axis) {
  if (matrix.type != WeightType::int8) return graph.floats(name, as_floats(matrix), dims);
  const int64_t outputs = dims[static_cast<size_t>(axis)];
  return graph.node("DequantizeLinear",
                    {graph.constant(name, OnnxType::int8, dims, matrix.data),
                     graph.floats(name + "_scale", {matrix.scale, matrix.scale + outputs}, {outputs})},
                    {{"axis", axis}});
}

OnnxName onnx_linear(OnnxGraph& graph, const std::string& name, const OnnxName& x, const cpu::PackedLinear& linear) {
  const cpu::StoredMatrix stored = linear.stored();
  const cpu::MatrixView rows = stored.view();  // [O,I]
  const std::vector<uint8_t> turned =
      transposed_bytes(rows.data, rows.rows, rows.columns, cpu::element_bytes(rows.type));
  const cpu::MatrixView columns{rows.type, rows.columns, rows.rows, turned.data(), rows.scale};
  const OnnxName weight = onnx_weight(graph, name + ".weight", columns, {columns.rows, columns.columns}, 1);
  const OnnxName bias =
      graph.floats(name + ".bias", {linear.bias(), linear.bias() + linear.outputs()}, {linear.outputs()});
  return graph.add(graph.matmul(x, weight), bias);
}

OnnxName onnx_activation(OnnxGraph& graph, Activation activation, const OnnxName& x) {
  const auto half_of_one_plus = [&](const OnnxName& y) {
    return graph.multiply(graph.multiply(x, graph.add(y, graph.number(1))), graph.number(0.5F));
  };
  switch (activation) {
    case Activation::relu:
      return graph.node("Relu", {x});
    case Activation::silu:
      return graph.multiply(x, graph.node("Sigmoid", {x}));
    case Activation::gelu:  // x (1 + erf(x / sqrt(2))) / 2
      return half_of_one_plus(graph.node("Erf", {graph.divide(x, graph.number(1.41421356F))}));
    case Activation::gelu_tanh: {  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
      const OnnxName cube = graph.multiply(graph.multiply(x, x), x);
      const OnnxName sum = graph.add(x, graph.multiply(cube, graph.number(0.044715F)));
      return half_of_one_plus(graph.node("Tanh", {graph.multiply(sum, graph.number(0.79788456F))}));
    }
  }
  SPARSIGHT_CHECK(false);
  return {};
}

OnnxName onnx_patches(OnnxGraph& graph, const OnnxName& images, int64_t channels, int64_t down, int64_t across,
                      int64_t side) {
  const OnnxName parts = graph.reshape(images, {-1, channels, down, side, across, side});
  return graph.reshape(graph.transpose(parts, {0, 2, 4, 1, 3, 5}), {-1, down * across, channels * side * side});
}

OnnxName onnx_norm(OnnxGraph& graph, const std::vector<float>& weight, const std::vector<float>& bias, float epsilon,
                   const OnnxName& x) {
  const auto width = static_cast<int64_t>(weight.size());
  return graph.node("LayerNormalization",
                    {x, graph.floats("norm.weight", weight, {width}), graph.floats("norm.bias", bias, {width})},
                    {{"axis", -1}, {"epsilon", epsilon}});
}

OnnxName onnx_norm(OnnxGraph& graph, const Norm& norm, const OnnxName& x) {
  return onnx_norm(graph, norm.weight, norm.bias, norm.epsilon, x);
}

}  // namespace sparsight::engine
