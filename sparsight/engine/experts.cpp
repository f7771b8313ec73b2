#include "sparsight/engine/experts.h"

#include <array>

#include "sparsight/engine/expert_rows.h"
#include "sparsight/engine/file/fields.h"
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
  if (on_demand_.columns) return Experts::run(threads, rows, tokens, residual, out);
  weights_.run(threads, rows, tokens, activation_, residual, out);
}

void MlpExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local ExpertRows in_place;
  if (on_demand_.columns) {
    for (int64_t e = 0; e < count(); ++e) {
      if (offsets[e + 1] == offsets[e]) continue;
      const std::array<int64_t, 2> own{0, offsets[e + 1] - offsets[e]};
      in_place.set_in_place(own.data(), 1);
      const ColumnPtr column = on_demand_.columns->acquire(e);
      column->layers[static_cast<size_t>(on_demand_.number)].run(
          threads, in_place.numbers(), rows + offsets[e] * width(), activation_, nullptr, out + offsets[e] * width());
    }
    return;
  }
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

}  // namespace sparsight::engine
