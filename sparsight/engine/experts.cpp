#include "sparsight/engine/experts.h"

#include <array>

#include "sparsight/core/error.h"
#include "sparsight/engine/expert_rows.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/experts/grouped_linear.h"
#include "sparsight/kernels/routing/combine_parts.h"
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

void MlpExperts::run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens,
                     const float* residual, float* out) const {
  weights_.run(threads, rows, tokens, activation_, residual, out);
}

void MlpExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local ExpertRows in_place;
  in_place.set_in_place(offsets, count());
  weights_.run(threads, in_place.numbers(), rows, activation_, nullptr, out);
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
  fields.experts("weights", weights_);
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

OnnxName take_chosen(OnnxGraph& graph, const OnnxName& all, const OnnxName& chosen) {
  return chosen.empty() ? all : graph.gather(all, chosen, 0);
}

// Each image's k experts on all its tokens.
OnnxName export_experts_of_images(OnnxGraph& graph, const Experts& experts, const OnnxName& tokens,
                                  const OnnxRouting& routing) {
  const int64_t k = routing.k;
  OnnxName rows = tokens;
  if (k > 1) {
    const OnnxName repeated = graph.node("Expand", {graph.unsqueeze(tokens, 1), graph.integers({1, k, 1, 1})});
    rows = graph.reshape(repeated, {-1, routing.tokens, experts.width()});
  }
  const OnnxName made = experts.export_rows(graph, rows, graph.reshape(routing.of_image, {-1}));
  const OnnxName by_choice = graph.reshape(made, {-1, k, routing.tokens, experts.outputs()});
  const OnnxName gates = graph.unsqueeze(graph.transpose(routing.gates, {0, 2, 1}), -1);
  return graph.sum(graph.multiply(by_choice, gates), 1, false);
}

}  // namespace

OnnxName Experts::export_onnx(OnnxGraph& graph, const OnnxName& tokens, const OnnxRouting& routing) const {
  if (!routing.of_image.empty()) return export_experts_of_images(graph, *this, tokens, routing);
  OnnxName made = export_rows(graph, graph.reshape(tokens, {1, -1, width()}), "");  // [E,T,O]
  if (routing.is_gated()) {
    const OnnxName gates = graph.transpose(graph.reshape(all_gates(graph, routing), {-1, count()}), {1, 0});
    made = graph.multiply(made, graph.unsqueeze(gates, -1));
  }
  return graph.reshape(graph.sum(made, 0, false), {-1, routing.tokens, outputs()});
}

OnnxName MlpExperts::export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& chosen) const {
  const OnnxMlps mlps = onnx_mlps(graph, weights_);
  const auto linear = [&](const OnnxName& x, const OnnxName& weight, const OnnxName& bias) {
    const OnnxName y = graph.matmul(x, take_chosen(graph, weight, chosen));
    return bias.empty() ? y : graph.add(y, take_chosen(graph, bias, chosen));
  };
  return linear(onnx_activation(graph, activation_, linear(rows, mlps.w1, mlps.b1)), mlps.w2, mlps.b2);
}

OnnxName ExpertLinear::export_onnx(OnnxGraph& graph, const std::string& name, const OnnxName& rows,
                                   const OnnxName& chosen) const {
  const OnnxName all = graph.floats(name + ".weight", weight, {experts, inputs, outputs});
  const OnnxName y = graph.matmul(rows, take_chosen(graph, all, chosen));
  if (bias.empty()) return y;
  return graph.add(y, take_chosen(graph, graph.floats(name + ".bias", bias, {experts, 1, outputs}), chosen));
}

OnnxName LayeredExperts::export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& chosen) const {
  OnnxName x = rows;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].export_onnx(graph, cat("layers.", i), x, chosen);
    if (i + 1 == layers_.size()) break;
    if (!gated_) {
      x = onnx_activation(graph, activation_, x);
    } else {
      const std::vector<OnnxName> halves = graph.nodes("Split", {x}, 2, {{"axis", 2}});
      x = graph.multiply(onnx_activation(graph, activation_, halves[0]), halves[1]);
    }
  }
  return x;
}

}  // namespace sparsight::engine
