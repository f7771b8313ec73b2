#include "sparsight/engine/routers/soft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_routing.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

// rows * 1 / sqrt(sum of squares + 1e-12)
const float* unit_rows(const float* rows, int64_t count, int64_t width) {
  constexpr float kEpsilon = 1e-12F;
  thread_local cpu::Workspace space;
  float* const out = space.floats(count * width);
  for (int64_t r = 0; r < count; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c)
      sum += static_cast<double>(rows[r * width + c]) * static_cast<double>(rows[r * width + c]);
    const float factor = 1 / std::sqrt(static_cast<float>(sum) + kEpsilon);
    for (int64_t c = 0; c < width; ++c) out[r * width + c] = rows[r * width + c] * factor;
  }
  return out;
}

}  // namespace

void SoftRouter::choose(const RouterInput& input, Routing& routing) const {
  const int64_t tokens = routing.tokens, slots = map_.outputs(), per_image = routing.layout.per_image;
  routing.slots = slots / experts_;
  const float* const seen = normalises_ ? unit_rows(input.tokens, tokens, map_.inputs()) : input.tokens;
  map_.run(input.threads, seen, tokens, routing.logits.resize(tokens * slots));
  cpu::softmax_rows(input.threads, routing.logits.data(), routing.combine.resize(tokens * slots), tokens, slots);
  float* const dispatch = routing.scores.resize(tokens * slots);
  for (int64_t image = 0; image < routing.layout.images; ++image)  // the softmax over the tokens, slot by slot
    for (int64_t p = 0; p < slots; ++p) {
      const int64_t first = image * per_image * slots + p, end = (image + 1) * per_image * slots;
      float most = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t i = first; i < end; i += slots) most = std::max(most, routing.logits[i]);
      for (int64_t i = first; i < end; i += slots) sum += dispatch[i] = std::exp(routing.logits[i] - most);
      for (int64_t i = first; i < end; i += slots) dispatch[i] /= sum;
    }
}

void SoftRouter::visit(Fields& fields, const Shape& tokens) {
  fields.size("experts", experts_);
  fields.flag("normalises", normalises_);
  map_.visit(fields, "map", tokens.columns);
  fields.require(map_.outputs() % experts_ == 0, "as many slots for each expert");
}

OnnxRouting SoftRouter::export_onnx(OnnxGraph& graph, const OnnxTokens& tokens) const {
  OnnxName seen = tokens.rows;
  if (normalises_) {
    const OnnxName squares = graph.node("ReduceSumSquare", {seen}, {{"axes", std::vector<int64_t>{-1}}});
    seen = graph.divide(seen, graph.node("Sqrt", {graph.add(squares, graph.number(1e-12F))}));
  }
  const OnnxName logits = map_.export_onnx(graph, "router", seen);
  OnnxRouting routing;
  routing.dispatch = graph.softmax(logits, 1), routing.combine = graph.softmax(logits, 2);
  routing.slots = map_.outputs(), routing.count = experts_;
  return routing;
}

}  // namespace sparsight::engine
