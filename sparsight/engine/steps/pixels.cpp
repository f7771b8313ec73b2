#include "sparsight/engine/steps/pixels.h"

#include <algorithm>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::engine {

// Computed as 255 x / (255 std) - mean / std, as models/normalize.cpp does and for its reason: the same bits.
NormalizeStep::NormalizeStep(Value from, Value to, int64_t channels, const std::vector<double>& mean,
                             const std::vector<double>& std, bool to_map)
    : Step(to), from_(from), channels_(channels), to_map_(to_map) {
  for (size_t c = 0; c < mean.size(); ++c) {
    scale_.push_back(static_cast<float>(1 / (255 * std[c])));
    shift_.push_back(static_cast<float>(-mean[c] / std[c]));
  }
}

void NormalizeStep::run(Frame& frame) const {
  const float* const from = frame.read(from_);
  float* const y = frame.write(to());
  const int64_t plane = from_.shape.numbers() / channels_;
  cpu::run_tasks(frame.threads(), frame.images() * channels_, [&](int64_t task, const auto&) {
    const int64_t image = task / channels_, c = task % channels_, step = to_map_ ? channels_ : 1;
    const float* const x = from + task * plane;
    float* const out = y + image * channels_ * plane + (to_map_ ? c : c * plane);
    const auto channel = static_cast<size_t>(c);
    for (int64_t i = 0; i < plane; ++i)
      out[i * step] = scale_.empty() ? x[i] : x[i] * 255.0F * scale_[channel] + shift_[channel];
  });
}

void PatchesStep::run(Frame& frame) const {
  const int64_t height = from_.shape.rows() / channels_, width = from_.shape.columns, numbers = from_.shape.numbers(),
                across = width / side_, patches = height / side_ * across, columns = to().shape.columns;
  const float* const x = frame.read(from_);
  float* const y = frame.write(to());
  cpu::run_tasks(frame.threads(), frame.images(), [&](int64_t image, const auto&) {
    for (int64_t s = 0; s < patches; ++s) {
      float* row = y + (image * patches + s) * columns;
      for (int64_t c = 0; c < channels_; ++c)
        for (int64_t i = 0; i < side_; ++i, row += side_)
          std::copy_n(x + image * numbers + (c * height + s / across * side_ + i) * width + s % across * side_, side_,
                      row);
    }
  });
}

void NormalizeStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.size("channels", channels_);
  fields.flag("to_map", to_map_);
  fields.floats("scale", scale_, channels_, /*required=*/false);
  fields.floats("shift", shift_, channels_, /*required=*/!scale_.empty());
  fields.require(from_.shape.rows() % channels_ == 0 && to().shape.numbers() == from_.shape.numbers(),
                 "as many numbers as it reads, of whole channels");
}

void PatchesStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.size("channels", channels_);
  fields.size("side", side_);
  const Shape &in = from_.shape, &out = to().shape;
  fields.require(in.rows() % channels_ == 0 && in.rows() / channels_ % side_ == 0 && in.columns % side_ == 0 &&
                     out.rows() == in.rows() / channels_ / side_ * (in.columns / side_) &&
                     out.columns == channels_ * side_ * side_,
                 "an image of whole patches");
}

void NormalizeStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  OnnxName pixels = onnx.planes(from_, channels_);
  if (!scale_.empty()) {
    std::vector<float> scale = scale_;
    for (float& each : scale) each *= 255;
    const std::vector<int64_t> dims{channels_, 1, 1};
    pixels = graph.add(graph.multiply(pixels, graph.floats("scale", scale, dims)), graph.floats("shift", shift_, dims));
  }
  if (to_map_)
    onnx.set_map(to(), pixels);
  else
    onnx.set_planes(to(), channels_, pixels);
}

void PatchesStep::export_onnx(OnnxExport& onnx) const {
  onnx.set_rows(to(), onnx_patches(onnx.graph, onnx.planes(from_, channels_), channels_,
                                   from_.shape.rows() / channels_ / side_, from_.shape.columns / side_, side_));
}

}  // namespace sparsight::engine
