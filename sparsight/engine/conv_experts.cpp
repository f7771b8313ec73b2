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

OnnxName PatchWindows::export_onnx(OnnxGraph& graph, const ExpertLinear& filters, int64_t expert,
                                   const OnnxName& patches) const {
  const int64_t count = filters.outputs;
  std::vector<float> weight;  // [F,channels,kernel,kernel] of [taps,F]
  for (int64_t f = 0; f < count; ++f)
    for (int64_t tap = 0; tap < taps(); ++tap)
      weight.push_back(filters.weight[static_cast<size_t>((expert * taps() + tap) * count + f)]);
  const std::string name = cat("experts.", expert, ".filters");
  std::vector<OnnxName> inputs{patches, graph.floats(name + ".weight", weight, {count, channels, kernel, kernel})};
  if (!filters.bias.empty()) {
    const float* const bias = filters.bias.data() + expert * count;
    inputs.push_back(graph.floats(name + ".bias", {bias, bias + count}, {count}));
  }
  return graph.node("Conv", inputs,
                    {{"strides", std::vector<int64_t>{stride, stride}}, {"pads", std::vector<int64_t>(4, padding)}});
}

OnnxName PatchConvExperts::export_expert(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  const OnnxName patches = graph.reshape(rows, {-1, windows_.channels, windows_.side, windows_.side});
  const OnnxName active = onnx_activation(graph, activation_, windows_.export_onnx(graph, filters_, expert, patches));
  const OnnxName mean = graph.mean(active, {2, 3}, false);
  const OnnxName pooled = mean_ ? mean : graph.multiply(mean, graph.number(static_cast<float>(windows_.positions())));
  return output_.export_onnx(graph, "output", expert, pooled);
}

OnnxName NormConvExperts::export_expert(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  const int64_t channels = windows_.channels, own = filters_.outputs * windows_.positions();
  const auto of_channels = [&](const char* name, const std::vector<float>& all) {
    const auto first = all.begin() + expert * channels;
    return graph.floats(cat("experts.", expert, ".", name), {first, first + channels}, {channels, 1, 1});
  };
  const OnnxName patches = graph.reshape(rows, {-1, channels, windows_.side, windows_.side});
  const OnnxName normed =
      graph.add(graph.multiply(patches, of_channels("scale", scale_)), of_channels("shift", shift_));
  const OnnxName made = windows_.export_onnx(graph, filters_, expert, onnx_activation(graph, activation_, normed));
  const OnnxName zeros = graph.integers({0, expert * own, 0, outputs() - (expert + 1) * own});  // of other experts
  return graph.node("Pad", {graph.reshape(made, {-1, own}), zeros});
}

OnnxName BlockExperts::export_expert(OnnxGraph& graph, int64_t expert, const OnnxName& rows) const {
  const OnnxName map = graph.transpose(graph.reshape(rows, {-1, in_.height, in_.width, in_.channels}), {0, 3, 1, 2});
  const OnnxName made = blocks_[static_cast<size_t>(expert)].export_onnx(graph, map, in_);
  return graph.reshape(graph.transpose(made, {0, 2, 3, 1}), {-1, outputs()});
}

}  // namespace sparsight::engine
