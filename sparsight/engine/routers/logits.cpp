#include "sparsight/engine/routers/logits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_graph.h"
#include "sparsight/kernels/experts/grouped_linear.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

LinearMap::LinearMap(std::vector<float> weight, int64_t inputs, int64_t outputs, bool transposed,
                     std::vector<float> bias)
    : weight_(std::move(weight)), bias_(std::move(bias)), inputs_(inputs), outputs_(outputs), transposed_(transposed) {
  SPARSIGHT_CHECK(static_cast<int64_t>(weight_.size()) == inputs * outputs);
  SPARSIGHT_CHECK(bias_.empty() || static_cast<int64_t>(bias_.size()) == outputs);
}

void LinearMap::run(cpu::Threads& threads, const float* rows, int64_t count, float* out) const {
  run(threads, rows, count, 0, outputs_, out);
}

void LinearMap::run(cpu::Threads& threads, const float* rows, int64_t count, int64_t first, int64_t number,
                    float* out) const {
  SPARSIGHT_CHECK(transposed_ || number == outputs_);
  const std::array<int64_t, 2> all{0, count};
  cpu::RowProducts products;
  products.offset = all.data();
  // (What is only read is not written through a view.)
  products.matrices = {const_cast<float*>(weight_.data()) + first * inputs_, inputs_, number, transposed_};
  products.bias = bias_.empty() ? nullptr : bias_.data() + first;
  cpu::grouped_linear(threads, products, rows, {.width = number}, out);
}

void normalise_rows(float* rows, int64_t count, int64_t width) {
  for (int64_t r = 0; r < count; ++r, rows += width) {
    double sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += static_cast<double>(rows[c]) * static_cast<double>(rows[c]);
    const float norm = std::max(static_cast<float>(std::sqrt(sum)), 1e-12F);
    for (int64_t c = 0; c < width; ++c) rows[c] /= norm;
  }
}

void RouterLogits::run(cpu::Threads& threads, const float* tokens, int64_t count, float* logits) const {
  if (!projector_) return map_.run(threads, tokens, count, logits);
  thread_local cpu::Workspace space;
  float* const direction = space.floats(count * projector_->outputs());
  projector_->run(threads, tokens, count, direction);
  normalise_rows(direction, count, projector_->outputs());
  map_.run(threads, direction, count, logits);
}

OnnxName LinearMap::export_onnx(OnnxGraph& graph, const std::string& name, const OnnxName& x) const {
  const std::vector<int64_t> dims{transposed_ ? outputs_ : inputs_, transposed_ ? inputs_ : outputs_};
  const OnnxName weight = graph.floats(name + ".weight", weight_, dims);
  const OnnxName y = graph.matmul(x, transposed_ ? graph.transpose(weight, {1, 0}) : weight);
  return bias_.empty() ? y : graph.add(y, graph.floats(name + ".bias", bias_, {outputs_}));
}

OnnxName RouterLogits::export_onnx(OnnxGraph& graph, const OnnxName& tokens) const {
  if (!projector_) return map_.export_onnx(graph, "router", tokens);
  const OnnxName direction = projector_->export_onnx(graph, "router.projector", tokens);
  const OnnxName norm = graph.node("ReduceL2", {direction}, {{"axes", std::vector<int64_t>{-1}}});
  return map_.export_onnx(graph, "router", graph.divide(direction, graph.node("Max", {norm, graph.number(1e-12F)})));
}

void LinearMap::visit(Fields& fields, const char* name, int64_t inputs) {
  fields.part(name, [&] {
    fields.size("outputs", outputs_);
    fields.flag("transposed", transposed_);
    inputs_ = inputs;
    const std::vector<int64_t> shape =
        transposed_ ? std::vector<int64_t>{outputs_, inputs} : std::vector<int64_t>{inputs, outputs_};
    fields.floats("weight", weight_, shape);
    fields.floats("bias", bias_, outputs_, /*required=*/false);
  });
}

void RouterLogits::visit(Fields& fields, int64_t width) {
  fields.optional("has_projector", projector_,
                  [&](LinearMap& projector) { projector.visit(fields, "projector", width); });
  map_.visit(fields, "map", projector_ ? projector_->outputs() : width);
}

}  // namespace sparsight::engine
