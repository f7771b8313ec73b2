#include "sparsight/engine/conv_chain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/kernels/conv/conv_task.h"
#include "sparsight/kernels/elementwise/channel_moments.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

using Map = ConvChain::Map;

constexpr int64_t kPositionsAtOnce = 128;            // of a task, at least: their patches stay in the L2 cache
constexpr int64_t kWorkAtOnce = int64_t{1} << 20;    // multiply-adds of a task, if that many positions have fewer
constexpr int64_t kChannelGrain = 32;                // channels of a task are a multiple of this
constexpr int64_t kFloatsAtOnce = int64_t{1} << 21;  // of the hidden maps of the images in work

// Each calling thread has one, which its tasks share.
struct ConvBuffers {
  std::array<cpu::Workspace, 2> hidden;
  cpu::Workspace raw;
  std::vector<cpu::ChannelMoments> moments;
};
ConvBuffers& conv_buffers() {
  thread_local ConvBuffers buffers;
  return buffers;
}

constexpr size_t kConvBuffers = 4;
size_t to_index(ConvBuffer buffer) { return static_cast<size_t>(buffer); }

cpu::ConvGeometry conv_geometry(const ConvStep& step, Map in) {
  cpu::ConvGeometry g{step.kernel, step.stride, in.height, in.width};
  const auto positions = [&](int64_t side) { return (side + step.stride - 1) / step.stride; };
  // nn/conv.h, ConvPadding
  const auto before = [&](int64_t side) {
    const int64_t zeros = std::max<int64_t>(0, (positions(side) - 1) * step.stride + step.kernel - side);
    return step.same ? zeros / 2 : step.kernel / 2;
  };
  g.out_height = positions(in.height), g.out_width = positions(in.width);
  g.top = before(in.height), g.left = before(in.width);
  return g;
}

Map output_map(const ConvStep& step, Map in) {
  const cpu::ConvGeometry g = conv_geometry(step, in);
  return {g.out_height, g.out_width, step.outputs()};
}

// The parts of a map of all images that the tasks of a step compute: some rows of one image, or all rows of a few.
struct Parts {
  cpu::Threads& threads;
  int64_t images, images_at_once, row_parts, channel_parts, grains;
  Map map;

  // work: multiply-adds of a position.
  Parts(cpu::Threads& on, Map out, int64_t count, int64_t work) : threads(on), images(count), map(out) {
    const int64_t workers = threads.count(), for_each_thread = images * map.positions() / (4 * workers),
                  positions = std::max(kPositionsAtOnce, std::min(kWorkAtOnce / work, for_each_thread)),
                  fitting = std::max<int64_t>(1, positions / map.positions());
    images_at_once = std::clamp<int64_t>(images / workers, 1, fitting);
    row_parts = std::clamp<int64_t>((map.positions() + positions - 1) / positions, 1, map.height);
    grains = (map.channels + kChannelGrain - 1) / kChannelGrain;
    const int64_t others = (images + images_at_once - 1) / images_at_once * row_parts;
    channel_parts = others % workers == 0 || others >= 4 * workers ? 1 : std::min(workers, grains);
  }
  // Calls body(const cpu::ConvPart&).
  template <class Body>
  void run(const Body& body) const {
    const int64_t groups = (images + images_at_once - 1) / images_at_once;
    cpu::run_tasks(threads, groups * row_parts * channel_parts, [&](int64_t task, const auto&) {
      const int64_t channel = task % channel_parts, row = task / channel_parts % row_parts,
                    group = task / channel_parts / row_parts;
      cpu::ConvPart part;
      part.first_image = group * images_at_once;
      part.images = std::min(images_at_once, images - part.first_image);
      part.first_row = row * map.height / row_parts;
      part.rows = (row + 1) * map.height / row_parts - part.first_row;
      part.first = grains * channel / channel_parts * kChannelGrain;
      part.count = std::min(map.channels, grains * (channel + 1) / channel_parts * kChannelGrain) - part.first;
      body(part);
    });
  }
};

// y = relu(norm(raw) + residual) of one step whose convolution has written `raw`, with the moments of its rows.
void normalise(const ConvStep& step, const float* raw, const cpu::ChannelMoments* moments, const float* residual,
               float* y, const Parts& parts) {
  const Map map = parts.map;
  parts.run([&](const cpu::ConvPart& part) {
    thread_local std::vector<float> scale, shift;
    scale.resize(static_cast<size_t>(map.channels)), shift.resize(scale.size());
    for (int64_t image = part.first_image; image < part.first_image + part.images; ++image) {
      cpu::group_scales({moments + image * map.height * map.channels, map.height, map.channels, map.width,
                         step.norm.groups, step.norm.epsilon},
                        step.norm.weight.data(), step.norm.bias.data(), scale.data(), shift.data());
      const int64_t first = ((image * map.height + part.first_row) * map.width) * map.channels + part.first;
      cpu::kernels().scale_shift({raw + first, scale.data() + part.first, shift.data() + part.first,
                                  residual ? residual + first : nullptr, y + first, part.rows * map.width, part.count,
                                  map.channels, step.relu});
    }
  });
}

// min(y, limit); NaN stays.
void limit_part(float* y, Map map, const cpu::ConvPart& part, float limit) {
  for (int64_t image = part.first_image; image < part.first_image + part.images; ++image) {
    float* at = y + (image * map.height + part.first_row) * map.width * map.channels + part.first;
    for (int64_t position = 0; position < part.rows * map.width; ++position, at += map.channels)
      for (int64_t c = 0; c < part.count; ++c) at[c] = at[c] > limit ? limit : at[c];
  }
}

void run_step(cpu::Threads& threads, const ConvStep& step, Map in, const float* x, const float* residual, float* y,
              int64_t images) {
  const cpu::ConvGeometry geometry = conv_geometry(step, in);
  const Map out = output_map(step, in);
  const int64_t work = step.kernel * step.kernel * (step.is_depthwise() ? 1 : in.channels) * out.channels;
  const Parts parts(threads, out, images, work);
  cpu::ConvMaps maps;
  maps.x = x;
  if (!step.before.scale.empty()) maps.scale = step.before.scale.data(), maps.shift = step.before.shift.data();
  if (step.norm.groups == 0) {
    maps.residual = residual, maps.y = y, maps.relu = step.relu;
    parts.run([&](const cpu::ConvPart& part) {
      if (step.is_depthwise())
        step.depthwise.run(maps, geometry, part);
      else
        step.conv.run(maps, geometry, part);
      if (std::isfinite(step.limit)) limit_part(y, out, part, step.limit);
    });
    return;
  }
  ConvBuffers& buffers = conv_buffers();
  maps.y = buffers.raw.floats(images * out.positions() * out.channels), maps.relu = step.relu_first;
  buffers.moments.resize(static_cast<size_t>(images * out.height * out.channels));
  cpu::ChannelMoments* const moments = buffers.moments.data();
  parts.run([&](const cpu::ConvPart& part) {
    step.conv.run(maps, geometry, part);
    for (int64_t image = part.first_image; image < part.first_image + part.images; ++image)
      for (int64_t row = part.first_row; row < part.first_row + part.rows; ++row) {
        const int64_t line = image * out.height + row;
        cpu::channel_moments(maps.y + line * out.width * out.channels + part.first, out.width, out.channels, part.count,
                             moments + line * out.channels + part.first);
      }
  });
  normalise(step, maps.y, moments, residual, y, parts);
}

}  // namespace

ConvChain::Map ConvChain::output(Map input) const {
  std::array<Map, kConvBuffers> maps{input};
  for (const ConvStep& step : steps_) maps[to_index(step.to)] = output_map(step, maps[to_index(step.from)]);
  return maps[to_index(ConvBuffer::output)];
}

int64_t ConvChain::bytes() const {
  int64_t sum = 0;
  for (const ConvStep& step : steps_) sum += step.bytes();
  return sum;
}

void ConvChain::run(cpu::Threads& threads, const float* x, float* y, int64_t images, Map input) const {
  const Map out = output(input);
  const int64_t floats = std::max(input.positions() * input.channels, out.positions() * out.channels);
  const int64_t workers = threads.count();
  const int64_t some = std::max<int64_t>(1, kFloatsAtOnce / floats / workers) * workers;
  for (int64_t first = 0; first < images; first += some)
    run_some(threads, x + first * input.positions() * input.channels, y + first * out.positions() * out.channels,
             std::min(some, images - first), input);
}

void ConvChain::run_some(cpu::Threads& threads, const float* x, float* y, int64_t images, Map input) const {
  std::array<Map, kConvBuffers> maps{input};
  std::array<const float*, kConvBuffers> floats{x, y};
  for (const ConvStep& step : steps_) {
    const size_t from = to_index(step.from), target = to_index(step.to), hidden = to_index(ConvBuffer::hidden);
    const Map out = maps[target] = output_map(step, maps[from]);
    float* to = y;
    if (target >= hidden)
      floats[target] = to = conv_buffers().hidden[target - hidden].floats(images * out.positions() * out.channels);
    const float* const residual = step.has_residual ? floats[to_index(step.residual)] : nullptr;
    run_step(threads, step, maps[from], floats[from], residual, to, images);
  }
}

namespace {

constexpr std::array<const char*, kConvBuffers> kBufferNames{"input", "output", "hidden", "second_hidden"};

void visit_affine(Fields& fields, Affine& affine, int64_t channels) {
  fields.floats("before_scale", affine.scale, channels, /*required=*/false);
  fields.floats("before_shift", affine.shift, channels, /*required=*/!affine.scale.empty());
}

void visit_norm(Fields& fields, GroupNorm& norm, int64_t channels) {
  fields.size_or_zero("norm_groups", norm.groups);
  if (norm.groups == 0) return;
  fields.floats("norm_weight", norm.weight, channels);
  fields.floats("norm_bias", norm.bias, channels);
  fields.real("norm_epsilon", norm.epsilon, {0, std::numeric_limits<float>::max()});
  fields.require(channels % norm.groups == 0, "groups of equally many channels");
}

}  // namespace

void ConvStep::visit(Fields& fields) {
  fields.number("kernel", kernel, {1, 1024});
  fields.number("stride", stride, {1, 1024});
  fields.flag("same", same);
  fields.choice("from", from, kBufferNames);
  fields.choice("to", to, kBufferNames);
  fields.flag("has_residual", has_residual);
  fields.choice("residual", residual, kBufferNames);
  fields.flag("relu", relu);
  fields.flag("relu_first", relu_first);
  bool limited = std::isfinite(limit);
  fields.flag("limited", limited);
  if (limited) fields.epsilon("limit", limit);
  bool deep = is_depthwise();
  fields.flag("depthwise", deep);
  if (deep) {
    std::vector<float> weight = depthwise.weight(), bias = depthwise.bias();
    fields.floats("bias", bias, Fields::kAny);
    fields.floats("weight", weight, {kernel, kernel, static_cast<int64_t>(bias.size())});
    if (fields.reads()) depthwise = {std::move(weight), std::move(bias)};
  } else if (fields.reads()) {
    cpu::PackedLinear panels = fields.read_linear("conv", Fields::kAny, Fields::kAny, /*together=*/1);
    fields.require(panels.inputs() % (kernel * kernel) == 0, "a weight for each tap");
    conv = cpu::PackedConv(std::move(panels), kernel);
  } else {
    fields.write_linear("conv", conv.panels());
  }
  visit_affine(fields, before, inputs());
  visit_norm(fields, norm, outputs());
  fields.require(!deep || (before.scale.empty() && norm.groups == 0 && !has_residual),
                 "a depthwise convolution without norms and residual");
}

void ConvChain::visit(Fields& fields, Map input) {
  auto count = static_cast<int64_t>(steps_.size());
  std::array<Map, kConvBuffers> maps{input};
  fields.list("convolutions", count, {1, kMaxLayers}, [&](int64_t i) {
    if (fields.reads()) steps_.emplace_back();
    ConvStep& step = steps_[static_cast<size_t>(i)];
    step.visit(fields);
    const Map in = maps[to_index(step.from)];
    fields.require(step.to != ConvBuffer::input && step.to != step.from && in.channels == step.inputs(),
                   "a map of its channels to read, and another to write");
    const Map out = maps[to_index(step.to)] = output_map(step, in), residual = maps[to_index(step.residual)];
    fields.require(out.positions() > 0 && out.positions() <= kMaxFieldNumber, "a map of some positions to write");
    fields.require(!step.has_residual || (residual.height == out.height && residual.width == out.width &&
                                          residual.channels == out.channels),
                   "a residual of the shape that it writes");
  });
  fields.require(maps[to_index(ConvBuffer::output)].channels > 0, "a convolution that writes the output");
}

namespace {

OnnxName export_convolution(OnnxGraph& graph, const ConvStep& step, const OnnxName& x, Map in) {
  const cpu::ConvGeometry g = conv_geometry(step, in);
  const auto after = [&](int64_t out, int64_t side, int64_t before) {
    return std::max<int64_t>(0, (out - 1) * step.stride + step.kernel - side - before);
  };
  const std::vector<int64_t> pads{g.top, g.left, after(g.out_height, in.height, g.top),
                                  after(g.out_width, in.width, g.left)};
  const int64_t inputs = step.is_depthwise() ? 1 : step.inputs(), outputs = step.outputs(), taps = g.kernel * g.kernel;
  const std::vector<float> stored =
      step.is_depthwise() ? step.depthwise.weight() : as_floats(step.conv.panels().stored().view());
  std::vector<float> weight;  // [O,I,K,K] of [O,K,K,I], or of [K,K,O]
  weight.reserve(stored.size());
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t tap = 0; tap < taps; ++tap)
        weight.push_back(
            stored[static_cast<size_t>(step.is_depthwise() ? tap * outputs + o : (o * taps + tap) * inputs + i)]);
  const float* const bias = step.is_depthwise() ? step.depthwise.bias().data() : step.conv.panels().bias();
  return graph.node("Conv",
                    {x, graph.floats("conv.weight", weight, {outputs, inputs, g.kernel, g.kernel}),
                     graph.floats("conv.bias", {bias, bias + outputs}, {outputs})},
                    {{"strides", std::vector<int64_t>{step.stride, step.stride}},
                     {"pads", pads},
                     {"group", step.is_depthwise() ? outputs : 1}});
}

OnnxName export_norm(OnnxGraph& graph, const GroupNorm& norm, const OnnxName& x, Map map) {
  const std::vector<float> ones(static_cast<size_t>(norm.groups), 1.0F), zeros(static_cast<size_t>(norm.groups), 0.0F);
  const OnnxName groups = graph.reshape(x, {-1, norm.groups, map.channels / norm.groups * map.positions()});
  const OnnxName normed =
      graph.node("InstanceNormalization",
                 {groups, graph.floats("ones", ones, {norm.groups}), graph.floats("zeros", zeros, {norm.groups})},
                 {{"epsilon", static_cast<float>(norm.epsilon)}});
  const std::vector<int64_t> dims{map.channels, 1, 1};
  const OnnxName scaled = graph.multiply(graph.reshape(normed, {-1, map.channels, map.height, map.width}),
                                         graph.floats("norm.weight", norm.weight, dims));
  return graph.add(scaled, graph.floats("norm.bias", norm.bias, dims));
}

}  // namespace

OnnxName ConvChain::export_onnx(OnnxGraph& graph, const OnnxName& map, Map input) const {
  std::array<Map, kConvBuffers> maps{input};
  std::array<OnnxName, kConvBuffers> names{map};
  for (const ConvStep& step : steps_) {
    const Map in = maps[to_index(step.from)], out = output_map(step, in);
    OnnxName x = names[to_index(step.from)];
    if (!step.before.scale.empty()) {
      const std::vector<int64_t> dims{in.channels, 1, 1};
      const OnnxName scaled = graph.multiply(x, graph.floats("before.scale", step.before.scale, dims));
      x = graph.node("Relu", {graph.add(scaled, graph.floats("before.shift", step.before.shift, dims))});
    }
    x = export_convolution(graph, step, x, in);
    if (step.norm.groups > 0) {
      if (step.relu_first) x = graph.node("Relu", {x});
      x = export_norm(graph, step.norm, x, out);
    }
    if (step.has_residual) x = graph.add(x, names[to_index(step.residual)]);
    if (step.relu) x = graph.node("Relu", {x});
    if (step.norm.groups == 0 && std::isfinite(step.limit)) x = graph.node("Min", {x, graph.number(step.limit)});
    maps[to_index(step.to)] = out, names[to_index(step.to)] = x;
  }
  return names[to_index(ConvBuffer::output)];
}

}  // namespace sparsight::engine
