#include "sparsight/engine/experts.h"

#include <array>

#include "sparsight/core/error.h"
#include "sparsight/engine/expert_rows.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/experts/grouped_linear.h"
#include "sparsight/kernels/routing/combine_parts.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

void Experts::run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens, const float* residual,
                  float* out) const {
  thread_local cpu::Workspace gathered, results;
  float* const in = gathered.floats(rows.map.rows * width());
  float* const computed = results.floats(rows.map.rows * outputs());
  cpu::gather_rows<float>(threads, rows.map, tokens, nullptr, width(), in);
  run_rows(threads, in, rows.offset, computed);
  cpu::combine_parts(threads, rows.map, rows.gate, {computed, outputs(), 1, outputs()}, out,
                     {.residual = residual, .width = outputs()});
}

void ColumnLayer::check_unused() const {
  if (columns) fail("a model whose experts are read on demand cannot be written; read all of them");
}

void MlpExperts::run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens,
                     const float* residual, float* out) const {
  if (!on_demand_.columns) return weights_.run(threads, rows, tokens, activation_, residual, out);
  std::vector<ColumnPtr> columns;  // those in use
  std::vector<const cpu::PackedExperts*> each(static_cast<size_t>(count()));
  for (int64_t e = 0; e < count(); ++e) {
    if (rows.offset[e + 1] == rows.offset[e]) continue;
    columns.push_back(on_demand_.columns->acquire(e));
    each[static_cast<size_t>(e)] = &columns.back()->layers[static_cast<size_t>(on_demand_.number)];
  }
  cpu::PackedExperts::run_each(threads, shape(), each.data(), rows, tokens, activation_, residual, out);
}

void MlpExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local ExpertRows in_place;
  in_place.set_in_place(offsets, count());
  run(threads, in_place.numbers(), rows, nullptr, out);
}

void ExpertLinear::run(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  cpu::RowProducts products;
  products.offset = offsets, products.experts = experts;
  // (What is only read is not written through a view.)
  products.matrices = {const_cast<float*>(weight.data()), inputs, outputs, false};
  products.bias = bias.empty() ? nullptr : bias.data();
  cpu::grouped_linear(threads, products, rows, {.width = outputs}, out);
}

int64_t LayeredExperts::bytes() const {
  int64_t sum = 0;
  for (const ExpertLinear& layer : layers_) sum += layer.bytes();
  return sum;
}

void LayeredExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local std::array<cpu::Workspace, 2> spaces;
  thread_local cpu::Workspace slopes;
  const int64_t count = offsets[this->count()];
  const float* x = rows;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ExpertLinear& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    float* y = last ? out : spaces[i % 2].floats(count * layer.outputs);
    layer.run(threads, x, offsets, y);
    if (last) return;
    const int64_t half = layer.outputs / 2, active = gated_ ? half : layer.outputs;
    float* const slope = slopes.floats(active);
    for (int64_t r = 0; r < count; ++r) {
      float* const row = y + r * layer.outputs;
      cpu::kernels().activate(activation_, row, row, slope, active);
      if (gated_) cpu::kernels().multiply(row + half, row, half);
      if (gated_) std::copy_n(row, half, y + r * half);
    }
    x = y;
  }
}

void MlpExperts::visit(Fields& fields) {
  fields.choice("activation", activation_, kActivationNames);
  fields.experts("weights", weights_, on_demand_);
}

void ExpertLinear::visit(Fields& fields, const char* name) {
  fields.part(name, [&] {
    fields.size("experts", experts);
    fields.size("inputs", inputs);
    fields.size("outputs", outputs);
    fields.expert_floats("weight", weight, experts, {inputs, outputs});
    fields.expert_floats("bias", bias, experts, {outputs}, /*required=*/false);
  });
}

void LayeredExperts::visit(Fields& fields) {
  fields.choice("activation", activation_, kActivationNames);
  fields.flag("gated", gated_);
  auto count = static_cast<int64_t>(layers_.size());
  fields.list("layers", count, {1, kMaxLayers}, [&](int64_t i) {
    if (fields.reads()) layers_.emplace_back();
    layers_[static_cast<size_t>(i)].visit(fields, "linear");
    if (i == 0) return;
    const ExpertLinear &before = layers_[static_cast<size_t>(i - 1)], &layer = layers_[static_cast<size_t>(i)];
    const int64_t halves = gated_ ? 2 : 1;
    fields.require(layer.experts == before.experts && layer.inputs * halves == before.outputs,
                   "layers of as many experts, which read what the one before writes");
  });
}

namespace {

// The rows of an expert, of all rows [T,D].
struct OnnxExpertRows {
  OnnxName rows, gate, taken;  // [R,D]; [R,1], "" without gates
  OnnxName index;              // [R]: where they are in all rows; "" if they are all
};

// gates, taken: [T,E], or "" without.
OnnxExpertRows export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& gates, const OnnxName& taken,
                           int64_t expert, bool gathers) {
  if (gates.empty()) return {rows, "", "", ""};
  const OnnxName gate = graph.slice(gates, 1, expert, expert + 1), takes = graph.slice(taken, 1, expert, expert + 1);
  if (!gathers) return {rows, gate, takes, ""};
  const OnnxName index = graph.reshape(graph.node("NonZero", {graph.reshape(takes, {-1})}), {-1});
  return {graph.gather(rows, index, 0), graph.gather(gate, index, 0), "", index};
}

// sum [T,O] + made [R,O] in the rows of the index, or in all.
OnnxName export_sum(OnnxGraph& graph, const OnnxName& sum, const OnnxName& made, const OnnxName& index) {
  if (index.empty()) return sum.empty() ? made : graph.add(sum, made);
  return graph.node("ScatterND", {sum, graph.unsqueeze(index, -1), graph.add(graph.gather(sum, index, 0), made)});
}

}  // namespace

OnnxName Experts::export_onnx(OnnxGraph& graph, const OnnxName& tokens, const OnnxRouting& routing) const {
  const OnnxName rows = graph.reshape(tokens, {-1, width()});
  OnnxName gates, taken, sum;
  if (routing.is_gated()) {
    gates = graph.reshape(all_gates(graph, routing), {-1, count()});
    taken = graph.reshape(all_taken(graph, routing), {-1, count()});
    const OnnxName total = graph.node("Shape", {rows}, {{"start", 0}, {"end", 1}});
    if (routing.gathers_rows)
      sum = graph.node("ConstantOfShape", {graph.concat({total, graph.integers({outputs()})}, 0)});
  }
  for (int64_t e = 0; e < count(); ++e) {
    OnnxExpertRows own = export_rows(graph, rows, gates, taken, e, routing.gathers_rows);
    const bool gated = !own.gate.empty();
    if (gated && gates_rows()) own.rows = graph.multiply(own.rows, own.gate);
    OnnxName made = export_expert(graph, e, own.rows);
    if (gated && !gates_rows()) made = graph.multiply(made, own.gate);
    if (gated && gates_rows() && own.index.empty()) made = graph.multiply(made, own.taken);
    sum = export_sum(graph, sum, made, own.index);
  }
  return graph.reshape(sum, {-1, routing.tokens, outputs()});
}

OnnxName MlpExperts::export_expert(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  on_demand_.check_unused();
  cpu::OwnThreads thread(1);
  const cpu::StoredMlp mlp = weights_.stored(thread, expert);
  const auto linear = [&](const std::string& name, const OnnxName& x, const cpu::StoredMatrix& weight,
                          const std::vector<float>& bias) {
    const cpu::MatrixView view = weight.view();
    const OnnxName y = graph.matmul(x, onnx_weight(graph, name + ".weight", view, {view.rows, view.columns}, 1));
    return bias.empty() ? y : graph.add(y, graph.floats(name + ".bias", bias, {view.columns}));
  };
  const std::string name = cat("experts.", expert);
  return linear(name + ".fc2", onnx_activation(graph, activation_, linear(name + ".fc1", rows, mlp.w1, mlp.b1)), mlp.w2,
                mlp.b2);
}

OnnxName ExpertLinear::export_onnx(OnnxGraph& graph, const std::string& name, int64_t expert,
                                   const OnnxName& rows) const {
  const auto part = [&](const std::vector<float>& all, int64_t numbers) {
    return std::vector<float>(all.begin() + expert * numbers, all.begin() + (expert + 1) * numbers);
  };
  const std::string whole = cat("experts.", expert, ".", name);
  const OnnxName y =
      graph.matmul(rows, graph.floats(whole + ".weight", part(weight, inputs * outputs), {inputs, outputs}));
  return bias.empty() ? y : graph.add(y, graph.floats(whole + ".bias", part(bias, outputs), {outputs}));
}

OnnxName LayeredExperts::export_expert(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  OnnxName x = rows;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].export_onnx(graph, cat("layers.", i), expert, x);
    if (i + 1 == layers_.size()) break;
    if (!gated_) {
      x = onnx_activation(graph, activation_, x);
    } else {
      const std::vector<OnnxName> halves = graph.nodes("Split", {x}, 2, {{"axis", 1}});
      x = graph.multiply(onnx_activation(graph, activation_, halves[0]), halves[1]);
    }
  }
  return x;
}

}  // namespace sparsight::engine
