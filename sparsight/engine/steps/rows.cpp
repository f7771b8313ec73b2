#include "sparsight/engine/steps/rows.h"

#include <algorithm>
#include <cmath>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/row_grid.h"
#include "sparsight/kernels/elementwise/layer_norm.h"
#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/routing/rows.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

void NormStep::run(Frame& frame) const {
  const Shape& shape = from_.shape;
  cpu::layer_norm(frame.threads(), {.rows = frame.images() * shape.rows(),
                                    .width = shape.columns,
                                    .x = frame.read(from_),
                                    .weight = norm_.weight.data(),
                                    .bias = norm_.bias.data(),
                                    .epsilon = norm_.epsilon,
                                    .out = frame.write(to())});
}

void LinearStep::run(Frame& frame) const {
  const int64_t in = linear_.inputs(), out = linear_.outputs(), rows = frame.images() * from_.shape.numbers() / in;
  const float* const x = frame.read(from_);
  const float* const residual = residual_.exists() ? frame.read(residual_) : nullptr;
  float* const y = frame.write(to());
  RowGrid(frame.threads(), rows, out).run([&](int64_t first, int64_t count, Columns columns) {
    thread_local cpu::Workspace blocks, panel;
    const cpu::Kernels& kernel = cpu::kernels();
    float* const a = blocks.floats(cpu::blocks_floats(in, count));
    cpu::to_blocks(x + first * in, count, in, a);
    cpu::Gemm p = linear_.gemm(columns.first, columns.count);
    p.m = count;
    p.a = a, p.a_block = count * cpu::kBlockLd;
    p.c = y + first * out + columns.first, p.c_ld = out;
    p.activates = activation_.has_value();
    if (activation_) p.activation = *activation_;
    kernel.product(p, panel.floats(kernel.panel_floats));
    if (!residual) return;
    for (int64_t r = first; r < first + count; ++r)
      kernel.add_scaled(1, residual + r * out + columns.first, y + r * out + columns.first, columns.count);
  });
}

void ElementwiseStep::run(Frame& frame) const {
  const int64_t columns = from_.shape.columns, rows = frame.images() * from_.shape.rows();
  const float* const x = frame.read(from_);
  const float* const residual = residual_.exists() ? frame.read(residual_) : nullptr;
  float* const y = frame.write(to());
  cpu::run_ranges(frame.threads(), rows, cpu::rows_of_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * columns; i < end * columns; ++i) {
      float value = factor_.empty() ? x[i] : x[i] * factor_[static_cast<size_t>(i % columns)];
      if (!shift_.empty()) value += shift_[static_cast<size_t>(i % columns)];
      if (residual) value += residual[i];
      if (function_ == Elementwise::relu) value = value < 0 ? 0 : value;  // NaN stays
      if (function_ == Elementwise::sigmoid) value = sigmoid(value);
      if (function_ == Elementwise::tanh) value = std::tanh(value);
      y[i] = value;
    }
  });
}

void NormStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  norm_.visit(fields, from_.shape.columns);
  fields.require(to().shape.rows() == from_.shape.rows() && to().shape.columns == from_.shape.columns,
                 "rows as many and as wide as it reads");
}

void LinearStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.value("residual", residual_, /*required=*/false);
  fields.linear("linear", linear_, Fields::kAny, Fields::kAny);
  fields.optional("activates", activation_,
                  [&](Activation& activation) { fields.choice("activation", activation, kActivationNames); });
  const int64_t numbers = from_.shape.numbers();
  fields.require(numbers % linear_.inputs() == 0 &&
                     to().shape.numbers() == numbers / linear_.inputs() * linear_.outputs() &&
                     (!residual_.exists() || residual_.shape.numbers() == to().shape.numbers()),
                 "a row of outputs for each row of inputs, and as many residuals");
}

void ElementwiseStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.value("residual", residual_, /*required=*/false);
  fields.choice("function", function_, std::array{"identity", "relu", "sigmoid", "tanh"});
  const int64_t columns = from_.shape.columns, numbers = from_.shape.numbers();
  fields.floats("factor", factor_, columns, /*required=*/false);
  fields.floats("shift", shift_, columns, /*required=*/false);
  fields.require(to().shape.numbers() == numbers && (!residual_.exists() || residual_.shape.numbers() == numbers),
                 "as many numbers as it reads");
}

void NormStep::export_onnx(OnnxExport& onnx) const {
  onnx.set_rows(to(), onnx_norm(onnx.graph, norm_, onnx.rows(from_)));
}

void LinearStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  OnnxName y = onnx_linear(graph, "linear", onnx.rows(from_, linear_.inputs()), linear_);
  if (activation_) y = onnx_activation(graph, *activation_, y);
  if (residual_.exists()) y = graph.add(y, onnx.rows(residual_, linear_.outputs()));
  onnx.set_rows(to(), y, linear_.outputs());
}

// Maps stay maps.
void ElementwiseStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const Shape& in = from_.shape;
  const bool by_map = onnx.has_map(from_) && to().shape.columns == in.columns && to().shape.height == in.height &&
                      to().shape.width == in.width &&
                      (!residual_.exists() || (onnx.has_map(residual_) && residual_.shape.columns == in.columns &&
                                               residual_.shape.height == in.height));
  const std::vector<int64_t> dims = by_map ? std::vector<int64_t>{in.columns, 1, 1} : std::vector<int64_t>{in.columns};
  OnnxName y = by_map ? onnx.map(from_) : onnx.rows(from_);
  if (!factor_.empty()) y = graph.multiply(y, graph.floats("factor", factor_, dims));
  if (!shift_.empty()) y = graph.add(y, graph.floats("shift", shift_, dims));
  if (residual_.exists()) y = graph.add(y, by_map ? onnx.map(residual_) : onnx.rows(residual_, in.columns));
  if (function_ == Elementwise::relu) y = graph.node("Relu", {y});
  if (function_ == Elementwise::sigmoid) y = graph.node("Sigmoid", {y});
  if (function_ == Elementwise::tanh) y = graph.node("Tanh", {y});
  if (by_map)
    onnx.set_map(to(), y);
  else
    onnx.set_rows(to(), y, in.columns);
}

}  // namespace sparsight::engine
