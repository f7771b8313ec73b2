#include "sparsight/engine/conv_experts.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/engine/expert_rows.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

// Offsets of an expert's windows from those of its rows, which have `factor` windows each.
std::pmr::vector<int64_t> scaled(const int64_t* offsets, int64_t count, int64_t factor) {
  std::pmr::vector<int64_t> all(offsets, offsets + count, cpu::scratch());
  for (int64_t& offset : all) offset *= factor;
  return all;
}

}  // namespace

void PatchWindows::gather(cpu::Threads& threads, const float* rows, int64_t count, float* out) const {
  cpu::run_tasks(threads, count, [&](int64_t row, const auto&) {
    const float* const patch = rows + row * channels * side * side;
    float* to = out + row * positions() * taps();
    for (int64_t position = 0; position < positions(); ++position) {
      const int64_t top = position / across() * stride - padding, left = position % across() * stride - padding;
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = top; i < top + kernel; ++i)
          for (int64_t j = left; j < left + kernel; ++j)
            *to++ = i >= 0 && i < side && j >= 0 && j < side ? patch[(c * side + i) * side + j] : 0;
    }
  });
}

void PatchConvExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local cpu::Workspace window_space, map_space, pooled_space, slope_space;
  const int64_t count = offsets[this->count()], positions = windows_.positions(), filters = filters_.outputs;
  const std::pmr::vector<int64_t> window_offsets = scaled(offsets, this->count() + 1, positions);
  float* const windows = window_space.floats(count * positions * windows_.taps());
  float* const map = map_space.floats(count * positions * filters);
  float* const pooled = pooled_space.floats(count * filters);
  float* const slope = slope_space.floats(filters);
  windows_.gather(threads, rows, count, windows);
  filters_.run(threads, windows, window_offsets.data(), map);
  for (int64_t r = 0; r < count; ++r) {
    float* const sum = pooled + r * filters;
    std::fill_n(sum, filters, 0.0F);
    for (int64_t l = 0; l < positions; ++l) {
      float* const position = map + (r * positions + l) * filters;
      cpu::kernels().activate(activation_, position, position, slope, filters);
      cpu::kernels().add_scaled(1, position, sum, filters);
    }
    if (mean_)
      for (int64_t f = 0; f < filters; ++f) sum[f] /= static_cast<float>(positions);
  }
  output_.run(threads, pooled, offsets, out);
}

void NormConvExperts::run(cpu::Threads& threads, const cpu::ExpertRowNumbers& rows, const float* tokens,
                          const float* residual, float* out) const {
  thread_local cpu::Workspace patch_space, window_space, map_space, slope_space;
  const int64_t count = rows.map.rows, positions = windows_.positions(), filters = filters_.outputs,
                channels = windows_.channels, numbers = outputs();
  float* const patches = patch_space.floats(count * width());
  cpu::gather_rows<float>(threads, rows.map, tokens, gates_input_ ? rows.gate : nullptr, width(), patches);
  float* const slope = slope_space.floats(positions);
  for (int64_t e = 0; e < this->count(); ++e)
    for (int64_t r = rows.offset[e]; r < rows.offset[e + 1]; ++r)
      for (int64_t c = 0; c < channels; ++c) {
        float* const plane = patches + (r * channels + c) * positions;
        const auto channel = static_cast<size_t>(e * channels + c);
        for (int64_t l = 0; l < positions; ++l) plane[l] = plane[l] * scale_[channel] + shift_[channel];
        cpu::kernels().activate(activation_, plane, plane, slope, positions);
      }
  const std::pmr::vector<int64_t> window_offsets = scaled(rows.offset, this->count() + 1, positions);
  float* const windows = window_space.floats(count * positions * windows_.taps());
  float* const map = map_space.floats(count * positions * filters);
  windows_.gather(threads, patches, count, windows);
  filters_.run(threads, windows, window_offsets.data(), map);
  if (residual)
    std::copy_n(residual, rows.map.tokens * numbers, out);
  else
    std::fill_n(out, rows.map.tokens * numbers, 0.0F);
  for (int64_t e = 0; e < this->count(); ++e)
    for (int64_t r = rows.offset[e]; r < rows.offset[e + 1]; ++r) {
      float* const to = out + rows.map.row_token[r] * numbers + e * filters * positions;
      const float gate = gates_input_ || !rows.gate ? 1.0F : rows.gate[r];
      for (int64_t l = 0; l < positions; ++l)
        for (int64_t f = 0; f < filters; ++f) to[f * positions + l] += gate * map[(r * positions + l) * filters + f];
    }
}

void NormConvExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  thread_local ExpertRows in_place;
  in_place.set_in_place(offsets, count());
  run(threads, in_place.numbers(), rows, nullptr, out);
}

int64_t BlockExperts::outputs() const {
  const ConvChain::Map out = blocks_.front().output(in_);
  return out.positions() * out.channels;
}

int64_t BlockExperts::bytes() const {
  int64_t sum = 0;
  for (const ConvChain& block : blocks_) sum += block.bytes();
  return sum;
}

void BlockExperts::run_rows(cpu::Threads& threads, const float* rows, const int64_t* offsets, float* out) const {
  for (int64_t e = 0; e < count(); ++e)
    if (const int64_t images = offsets[e + 1] - offsets[e]; images > 0)
      blocks_[static_cast<size_t>(e)].run(threads, rows + offsets[e] * width(), out + offsets[e] * outputs(), images,
                                          in_);
}

void PatchWindows::visit(Fields& fields) {
  fields.part("windows", [&] {
    fields.number("channels", channels, {1, 1 << 16});
    fields.number("side", side, {1, 4096});
    fields.number("padding", padding, {0, 4096});
    fields.number("kernel", kernel, {1, side + 2 * padding});
    fields.number("stride", stride, {1, 4096});
  });
}

void PatchConvExperts::visit(Fields& fields) {
  windows_.visit(fields);
  fields.choice("activation", activation_, kActivationNames);
  fields.flag("mean", mean_);
  filters_.visit(fields, "filters");
  output_.visit(fields, "output");
  fields.require(
      filters_.inputs == windows_.taps() && output_.inputs == filters_.outputs && output_.experts == filters_.experts,
      "filters of its windows, and an output layer that reads them");
}

void NormConvExperts::visit(Fields& fields) {
  windows_.visit(fields);
  fields.choice("activation", activation_, kActivationNames);
  fields.flag("gates_input", gates_input_);
  filters_.visit(fields, "filters");
  fields.expert_floats("scale", scale_, filters_.experts, {windows_.channels});
  fields.expert_floats("shift", shift_, filters_.experts, {windows_.channels});
  fields.require(filters_.inputs == windows_.taps() && windows_.positions() == windows_.side * windows_.side,
                 "filters of its windows, one for each position of a patch");
}

void BlockExperts::visit(Fields& fields) {
  fields.part("map", [&] {
    fields.number("height", in_.height, {1, 1 << 16});
    fields.number("width", in_.width, {1, 1 << 16});
    fields.size("channels", in_.channels);
  });
  auto count = static_cast<int64_t>(blocks_.size());
  fields.list("blocks", count, {1, kMaxFieldNumber}, [&](int64_t e) {
    if (fields.reads()) blocks_.emplace_back();
    fields.expert(e, [&] { blocks_[static_cast<size_t>(e)].visit(fields, in_); });
    const ConvChain::Map first = blocks_.front().output(in_), made = blocks_[static_cast<size_t>(e)].output(in_);
    fields.require(made.height == first.height && made.width == first.width && made.channels == first.channels,
                   "blocks that write maps of one shape");
  });
}

// Windows are gathered from patches with one zero appended, which stands for the padding.
OnnxName PatchWindows::export_onnx(OnnxGraph& graph, const OnnxName& rows) const {
  const int64_t numbers = channels * side * side;
  std::vector<int64_t> taken;
  for (int64_t position = 0; position < positions(); ++position) {
    const int64_t top = position / across() * stride - padding, left = position % across() * stride - padding;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = top; i < top + kernel; ++i)
        for (int64_t j = left; j < left + kernel; ++j)
          taken.push_back(i >= 0 && i < side && j >= 0 && j < side ? (c * side + i) * side + j : numbers);
  }
  const OnnxName padded = graph.node("Pad", {rows, graph.integers({0, 0, 0, 0, 0, 1})});
  const OnnxName windows = graph.gather(padded, graph.integers(taken, {positions(), taps()}), 2);
  const OnnxName dims = graph.integers({0, -1, taps()});  // 0: as it is
  return graph.node("Reshape", {windows, dims});
}

OnnxName PatchConvExperts::export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& chosen) const {
  const OnnxName map = filters_.export_onnx(graph, "filters", windows_.export_onnx(graph, rows), chosen);
  const OnnxName active = onnx_activation(graph, activation_, map);
  const OnnxName positions = graph.reshape(active, {0, -1, windows_.positions(), filters_.outputs});
  const OnnxName pooled = mean_ ? graph.mean(positions, {2}, false) : graph.sum(positions, 2, false);
  return output_.export_onnx(graph, "output", pooled, chosen);
}

OnnxName NormConvExperts::export_convolutions(OnnxGraph& graph, const OnnxName& x) const {
  const int64_t experts = count(), channels = windows_.channels, side = windows_.side, kernel = windows_.kernel,
                filters = filters_.outputs, taps = windows_.taps();
  std::vector<float> weight;  // [E F,channels,kernel,kernel]
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t tap = 0; tap < taps; ++tap)
        weight.push_back(filters_.weight[static_cast<size_t>((e * taps + tap) * filters + f)]);
  const std::vector<int64_t> of_channels{experts, channels, 1};
  const OnnxName normed = graph.add(graph.multiply(x, graph.floats("scale", scale_, of_channels)),
                                    graph.floats("shift", shift_, of_channels));
  const OnnxName active =
      graph.reshape(onnx_activation(graph, activation_, normed), {-1, experts * channels, side, side});
  std::vector<OnnxName> inputs{active,
                               graph.floats("filters.weight", weight, {experts * filters, channels, kernel, kernel})};
  if (!filters_.bias.empty()) inputs.push_back(graph.floats("filters.bias", filters_.bias, {experts * filters}));
  const OnnxName made =
      graph.node("Conv", inputs, {{"group", experts}, {"pads", std::vector<int64_t>(4, windows_.padding)}});
  return graph.reshape(made, {-1, experts, filters * windows_.positions()});
}

OnnxName NormConvExperts::export_onnx(OnnxGraph& graph, const OnnxName& tokens, const OnnxRouting& routing) const {
  const auto of_experts = [&](const OnnxName& x) { return graph.reshape(x, {-1, count(), 1}); };
  OnnxName patches = graph.reshape(tokens, {-1, 1, windows_.channels, windows_.positions()});
  if (routing.is_gated() && gates_input_)
    patches = graph.multiply(patches, graph.unsqueeze(of_experts(all_gates(graph, routing)), -1));
  OnnxName made = export_convolutions(graph, patches);
  if (routing.is_gated())
    made = graph.multiply(made, of_experts(gates_input_ ? all_taken(graph, routing) : all_gates(graph, routing)));
  return graph.reshape(made, {-1, routing.tokens, outputs()});
}

// (Each expert has rows of its own: nobody chooses some of these experts.)
OnnxName NormConvExperts::export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& chosen) const {
  SPARSIGHT_CHECK(chosen.empty());
  const int64_t experts = count(), each = outputs() / experts;
  const OnnxName patches =
      graph.reshape(graph.transpose(rows, {1, 0, 2}), {-1, experts, windows_.channels, windows_.positions()});
  const OnnxName made = graph.transpose(export_convolutions(graph, patches), {1, 0, 2});  // [E,R,F positions]
  std::vector<float> own(static_cast<size_t>(experts * experts));  // whether they are its channels
  for (int64_t e = 0; e < experts; ++e) own[static_cast<size_t>(e * experts + e)] = 1;
  const OnnxName placed = graph.multiply(graph.reshape(made, {experts, -1, 1, each}),
                                         graph.floats("own_channels", own, {experts, 1, experts, 1}));
  return graph.reshape(placed, {experts, -1, outputs()});
}

OnnxName BlockExperts::export_block(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  const OnnxName map = graph.transpose(graph.reshape(rows, {-1, in_.height, in_.width, in_.channels}), {0, 3, 1, 2});
  const OnnxName made = blocks_[static_cast<size_t>(expert)].export_onnx(graph, map, in_);
  return graph.reshape(graph.transpose(made, {0, 2, 3, 1}), {-1, outputs()});
}

// Convolutions have no batches of weights, so each expert gets the rows that chose it.
OnnxName BlockExperts::export_onnx(OnnxGraph& graph, const OnnxName& tokens, const OnnxRouting& routing) const {
  const OnnxName rows = graph.reshape(tokens, {-1, width()});
  OnnxName sum;
  if (!routing.is_gated()) {
    for (int64_t e = 0; e < count(); ++e) {
      const OnnxName made = export_block(graph, e, rows);
      sum = e == 0 ? made : graph.add(sum, made);
    }
    return graph.reshape(sum, {-1, routing.tokens, outputs()});
  }
  const OnnxName gates = graph.reshape(all_gates(graph, routing), {-1, count()}),
                 total = graph.node("Shape", {rows}, {{"start", 0}, {"end", 1}});
  sum = graph.node("ConstantOfShape", {graph.concat({total, graph.integers({outputs()})}, 0)});
  for (int64_t e = 0; e < count(); ++e) {
    const OnnxName gate = graph.slice(gates, 1, e, e + 1);
    const OnnxName taken = graph.node("NonZero", {graph.reshape(gate, {-1})});  // [1,R]
    const OnnxName row = graph.reshape(taken, {-1});
    const OnnxName made =
        graph.multiply(export_block(graph, e, graph.gather(rows, row, 0)), graph.gather(gate, row, 0));
    sum = graph.node("ScatterND", {sum, graph.transpose(taken, {1, 0}), graph.add(graph.gather(sum, row, 0), made)});
  }
  return graph.reshape(sum, {-1, routing.tokens, outputs()});
}

// (As those of NormConvExperts.)
OnnxName BlockExperts::export_rows(OnnxGraph& graph, const OnnxName& rows, const OnnxName& chosen) const {
  SPARSIGHT_CHECK(chosen.empty());
  std::vector<OnnxName> made;
  for (int64_t e = 0; e < count(); ++e) {
    const OnnxName own = graph.reshape(graph.slice(rows, 0, e, e + 1), {-1, width()});
    made.push_back(graph.unsqueeze(export_block(graph, e, own), 0));
  }
  return graph.concat(made, 0);
}

}  // namespace sparsight::engine
