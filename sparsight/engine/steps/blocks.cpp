#include "sparsight/engine/steps/blocks.h"

#include <algorithm>
#include <utility>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_export.h"

namespace sparsight::engine {

int64_t EmbedStep::bytes() const {
  return patches_.bytes() + 4 * static_cast<int64_t>(prefix_.size() + positions_.size());
}

void EmbedStep::run(Frame& frame) const {
  const Shape& in = from_.shape;
  const int64_t images = frame.images(), numbers = to().shape.numbers(), prefix = static_cast<int64_t>(prefix_.size());
  cpu::StridedImages maps{.pixels = frame.read(from_), .images = images, .image_stride = in.numbers()};
  if (planes_ > 0) {
    maps.channels = planes_, maps.height = in.rows() / planes_, maps.width = in.columns;
    maps.channel_stride = maps.height * maps.width, maps.row_stride = maps.width, maps.column_stride = 1;
  } else {
    maps.channels = in.columns, maps.height = in.height, maps.width = in.width;
    maps.channel_stride = 1, maps.row_stride = in.width * in.columns, maps.column_stride = in.columns;
  }
  float* const tokens = frame.write(to());
  for (int64_t image = 0; image < images; ++image) std::copy_n(prefix_.data(), prefix, tokens + image * numbers);
  patches_.run(frame.threads(), maps, positions_.data(), {tokens + prefix, numbers});
}

std::unique_ptr<Step> BlockStep::with_qk_norm() {
  TransformerBlockWeights weights;
  weights.qk_norm.emplace();
  return std::make_unique<BlockStep>(Value{}, Value{}, TransformerBlock(std::move(weights)));
}

const char* BlockStep::kind() const {
  if (block_.has_qk_norm()) return block_.has_mlp() ? "block with qk norm" : "attention with qk norm";
  return block_.has_mlp() ? "block" : "attention";
}

void BlockStep::run(Frame& frame) const {
  const Shape &in = from_.shape, &out = to().shape;
  block_.run(frame.threads(), frame.read(from_), frame.write(to()), {frame.images(), in.rows(), out.rows()});
}

void EmbedStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.size_or_zero("planes", planes_);
  const Shape &in = from_.shape, &out = to().shape;
  fields.require(planes_ == 0 || in.rows() % planes_ == 0, "planes of equal heights");
  patches_.visit(fields, planes_ > 0 ? planes_ : in.columns, out.columns);
  const int64_t height = planes_ > 0 ? in.rows() / planes_ : in.height, width = planes_ > 0 ? in.columns : in.width,
                side = patches_.patch(), patches = height / side * (width / side);
  fields.require(height % side == 0 && width % side == 0 && out.rows() == out.prefix + patches,
                 "an image of whole patches, and a token for each");
  fields.floats("prefix", prefix_, {out.prefix, out.columns}, /*required=*/out.prefix > 0);
  fields.floats("positions", positions_, {patches, out.columns}, /*required=*/false);
}

void BlockStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.require(to().shape.columns == from_.shape.columns && to().shape.rows() <= from_.shape.rows(),
                 "at most as many tokens as it reads, of the same width");
  block_.visit(fields, from_.shape.columns);
}

void EmbedStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const int64_t width = to().shape.columns, prefix = to().shape.prefix, patches = to().shape.rows() - prefix;
  const OnnxName pixels = planes_ > 0 ? onnx.planes(from_, planes_) : onnx.map(from_);
  const OnnxName embedded = patches_.export_onnx(graph, pixels);
  OnnxName tokens = graph.transpose(graph.reshape(embedded, {-1, width, patches}), {0, 2, 1});
  if (!positions_.empty()) tokens = graph.add(tokens, graph.floats("positions", positions_, {patches, width}));
  if (prefix > 0) {
    const OnnxName dims = graph.concat({onnx.images(), graph.integers({1, 1})}, 0);
    tokens =
        graph.concat({graph.node("Expand", {graph.floats("prefix", prefix_, {1, prefix, width}), dims}), tokens}, 1);
  }
  onnx.set_rows(to(), tokens);
}

void BlockStep::export_onnx(OnnxExport& onnx) const {
  onnx.set_rows(to(), block_.export_onnx(onnx.graph, onnx.rows(from_), from_.shape.rows(), to().shape.rows()));
}

}  // namespace sparsight::engine
