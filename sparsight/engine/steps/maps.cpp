#include "sparsight/engine/steps/maps.h"

#include <algorithm>
#include <limits>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::engine {

void ConvolveStep::run(Frame& frame) const {
  const Shape& in = from_.shape;
  convs_.run(frame.threads(), frame.read(from_), frame.write(to()), frame.images(), {in.height, in.width, in.columns});
}

Value add_convs(ProgramBuilder& builder, Value from, std::vector<ConvStep> convs) {
  ConvChain chain(std::move(convs));
  const ConvChain::Map out = chain.output({from.shape.height, from.shape.width, from.shape.columns});
  const Value to = builder.new_value({.height = out.height, .width = out.width, .columns = out.channels});
  return builder.add<ConvolveStep>(from, to, std::move(chain));
}

namespace {

// The positions of an axis that one maximum is of.
struct Window {
  int64_t first, end;
};

// Writes the maxima of windows; rows_of and columns_of(number): the window of an output row or column. NaN wins.
template <class Rows, class Columns>
void write_maxima(Frame& frame, Value from_value, Value to_value, const Rows& rows_of, const Columns& columns_of) {
  const Shape &in = from_value.shape, &out = to_value.shape;
  const int64_t channels = in.columns;
  const float* const x = frame.read(from_value);
  float* const y = frame.write(to_value);
  cpu::run_tasks(frame.threads(), frame.images() * out.height, [&](int64_t task, const auto&) {
    const int64_t image = task / out.height;
    const Window rows = rows_of(task % out.height);
    for (int64_t column = 0; column < out.width; ++column) {
      float* const to_position = y + (task * out.width + column) * channels;
      std::fill_n(to_position, channels, -std::numeric_limits<float>::infinity());
      const Window columns = columns_of(column);
      for (int64_t i = rows.first; i < rows.end; ++i)
        for (int64_t j = columns.first; j < columns.end; ++j) {
          const float* const from = x + ((image * in.height + i) * in.width + j) * channels;
          for (int64_t c = 0; c < channels; ++c)
            to_position[c] = from[c] > to_position[c] || from[c] != from[c] ? from[c] : to_position[c];
        }
    }
  });
}

}  // namespace

void MaxPoolStep::run(Frame& frame) const {
  const auto window = [](int64_t side) {
    return [side](int64_t i) { return Window{std::max<int64_t>(0, 2 * i - 1), std::min(side, 2 * i + 2)}; };
  };
  write_maxima(frame, from_, to(), window(from_.shape.height), window(from_.shape.width));
}

void WindowMaxStep::run(Frame& frame) const {
  const auto window = [this](int64_t i) { return Window{i * side_, (i + 1) * side_}; };
  write_maxima(frame, from_, to(), window, window);
}

void MapPatchesStep::run(Frame& frame) const {
  const Shape& map = to_patches_ ? from_.shape : to().shape;
  const int64_t channels = map.columns, across = map.width / side_, patch = channels * side_ * side_;
  const float* const x = frame.read(from_);
  float* const y = frame.write(to());
  cpu::run_tasks(frame.threads(), frame.images() * map.height, [&](int64_t task, const auto&) {
    const int64_t image = task / map.height, i = task % map.height;
    for (int64_t j = 0; j < map.width; ++j)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t in_map = (task * map.width + j) * channels + c;
        const int64_t in_patch = image * map.numbers() + (i / side_ * across + j / side_) * patch +
                                 (c * side_ + i % side_) * side_ + j % side_;
        y[to_patches_ ? in_patch : in_map] = x[to_patches_ ? in_map : in_patch];
      }
  });
}

namespace {

void total_of_rows(const float* rows, int64_t count, int64_t columns, float* sum) {
  std::fill_n(sum, columns, 0.0F);
  for (int64_t r = 0; r < count; ++r) cpu::kernels().add_scaled(1, rows + r * columns, sum, columns);
}

}  // namespace

void PoolStep::run(Frame& frame) const {
  const Shape& in = from_.shape;
  const int64_t columns = in.columns, patches = in.rows() - in.prefix;
  const float* const x = frame.read(from_);
  float* const y = frame.write(to());
  cpu::run_tasks(frame.threads(), frame.images(), [&](int64_t image, const auto&) {
    const float* const rows = x + image * in.numbers();
    if (pool_ == Pool::first) {
      const int64_t numbers = to().shape.numbers();
      std::copy_n(rows, numbers, y + image * numbers);
      return;
    }
    float* const out = y + image * columns;
    total_of_rows(rows + in.prefix * columns, patches, columns, out);
    for (int64_t c = 0; c < columns; ++c) out[c] /= static_cast<float>(patches);
  });
}

void TakenMeanStep::run(Frame& frame) const {
  const Shape& in = from_.shape;
  const Routing& routing = frame.routing(routing_);
  thread_local Array<int64_t> taken;
  std::fill_n(taken.resize(frame.images()), frame.images(), int64_t{0});
  for (const int64_t token : routing.token.all()) ++taken[token / in.rows()];
  const float* const x = frame.read(from_);
  float* const y = frame.write(to());
  for (int64_t image = 0; image < frame.images(); ++image) {
    float* const out = y + image * in.columns;
    total_of_rows(x + image * in.numbers(), in.rows(), in.columns, out);
    const float share = std::max(1.0F, static_cast<float>(taken[image]) / static_cast<float>(routing.experts));
    for (int64_t c = 0; c < in.columns; ++c) out[c] /= share;
  }
}

void TwoClassStep::run(Frame& frame) const {
  const float* const x = frame.read(from_);
  float* const y = frame.write(to());
  for (int64_t image = 0; image < frame.images(); ++image) y[2 * image] = 0, y[2 * image + 1] = x[image];
}

void ConvolveStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  const Shape &in = from_.shape, &out = to().shape;
  const ConvChain::Map map{in.height, in.width, in.columns};
  convs_.visit(fields, map);
  const ConvChain::Map made = convs_.output(map);
  fields.require(in.prefix == 0 && out.prefix == 0 && made.height == out.height && made.width == out.width &&
                     made.channels == out.columns,
                 "the map that its convolutions make");
}

void MaxPoolStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  const Shape &in = from_.shape, &out = to().shape;
  fields.require(in.prefix == 0 && out.prefix == 0 && out.height == (in.height + 1) / 2 &&
                     out.width == (in.width + 1) / 2 && out.columns == in.columns,
                 "a map of half the sides");
}

void WindowMaxStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.size("side", side_);
  const Shape &in = from_.shape, &out = to().shape;
  fields.require(in.prefix == 0 && out.prefix == 0 && out.height == in.height / side_ &&
                     out.width == in.width / side_ && out.columns == in.columns,
                 "a map of its whole windows");
}

void MapPatchesStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.flag("to_patches", to_patches_);
  fields.size("side", side_);
  const Shape &map = to_patches_ ? from_.shape : to().shape, &patches = to_patches_ ? to().shape : from_.shape;
  fields.require(map.prefix == 0 && map.height % side_ == 0 && map.width % side_ == 0 &&
                     patches.rows() == map.height / side_ * (map.width / side_) &&
                     patches.columns == map.columns * side_ * side_,
                 "a map of whole patches");
}

void PoolStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.choice("pool", pool_, std::array{"first", "mean"});
  const Shape &in = from_.shape, &out = to().shape;
  const int64_t rows = out.numbers() / in.columns;
  fields.require(out.rows() == 1 && out.columns % in.columns == 0 &&
                     (pool_ == Pool::first ? rows <= in.rows() : rows == 1 && in.rows() > in.prefix),
                 "a vector of whole rows that there are, or as wide as one, of which at least one is no prefix");
}

void TakenMeanStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.routing("routing", routing_, from_.shape.rows(), Fields::kAny);
  fields.require(to().shape.numbers() == from_.shape.columns, "a vector as wide as the rows");
}

void TwoClassStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.require(from_.shape.numbers() == 1 && to().shape.numbers() == 2, "two logits of one number");
}

void ConvolveStep::export_onnx(OnnxExport& onnx) const {
  const Shape& in = from_.shape;
  onnx.set_map(to(), convs_.export_onnx(onnx.graph, onnx.map(from_), {in.height, in.width, in.columns}));
}

void MaxPoolStep::export_onnx(OnnxExport& onnx) const {
  onnx.set_map(to(), onnx.graph.node("MaxPool", {onnx.map(from_)},
                                     {{"kernel_shape", std::vector<int64_t>{3, 3}},
                                      {"strides", std::vector<int64_t>{2, 2}},
                                      {"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
}

void WindowMaxStep::export_onnx(OnnxExport& onnx) const {
  const std::vector<int64_t> sides{side_, side_};
  onnx.set_map(to(), onnx.graph.node("MaxPool", {onnx.map(from_)}, {{"kernel_shape", sides}, {"strides", sides}}));
}

void MapPatchesStep::export_onnx(OnnxExport& onnx) const {
  const Shape& map = to_patches_ ? from_.shape : to().shape;
  const int64_t down = map.height / side_, across = map.width / side_;
  OnnxGraph& graph = onnx.graph;
  if (to_patches_) return onnx.set_rows(to(), onnx_patches(graph, onnx.map(from_), map.columns, down, across, side_));
  const OnnxName patches = graph.reshape(onnx.rows(from_), {-1, down, across, map.columns, side_, side_});
  onnx.set_map(to(),
               graph.reshape(graph.transpose(patches, {0, 3, 1, 4, 2, 5}), {-1, map.columns, map.height, map.width}));
}

void PoolStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const Shape& in = from_.shape;
  if (pool_ == Pool::first) {
    const int64_t rows = to().shape.columns / in.columns;
    const OnnxName first = graph.slice(onnx.rows(from_), 1, 0, rows);
    return onnx.set_rows(to(), rows == 1 ? first : graph.reshape(first, {-1, 1, to().shape.columns}));
  }
  if (onnx.has_map(from_))
    return onnx.set_rows(to(), graph.reshape(graph.mean(onnx.map(from_), {2, 3}, false), {-1, 1, in.columns}));
  const OnnxName rows = onnx.rows(from_);
  onnx.set_rows(to(), graph.mean(in.prefix == 0 ? rows : graph.slice(rows, 1, in.prefix, in.rows()), {1}, true));
}

void TakenMeanStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const OnnxRouting& routing = onnx.routings.at(routing_);
  const OnnxName exists = graph.node("GreaterOrEqual", {routing.made, graph.integer(0)});
  const OnnxName taken = graph.node("ReduceSum", {graph.cast(exists, OnnxType::fp32), graph.integers({1, 2})});
  const OnnxName average = graph.divide(taken, graph.number(static_cast<float>(routing.count)));
  onnx.set_rows(to(),
                graph.divide(graph.sum(onnx.rows(from_), 1, true), graph.node("Max", {average, graph.number(1)})));
}

void TwoClassStep::export_onnx(OnnxExport& onnx) const {
  onnx.set_rows(to(), onnx.graph.node("Pad", {onnx.rows(from_, 1), onnx.graph.integers({0, 0, 1, 0, 0, 0})}));
}

}  // namespace sparsight::engine
