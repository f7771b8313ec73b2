#include "sparsight/engine/steps/experts.h"

#include <algorithm>

#include "sparsight/engine/expert_rows.h"
#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/file/kinds.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/engine/row_grid.h"
#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

void ExpertsStep::run(Frame& frame) const {
  const Routing& routing = frame.routing(routing_);
  if (routing.mixes_tokens()) return mix(frame, routing);
  thread_local ExpertRows rows;
  rows.set(routing, tokens_read_);
  if (ExpertColumns* const columns = experts_->columns())
    for (int64_t e = 0; e < experts_->count(); ++e)
      if (rows.numbers().offset[e + 1] > rows.numbers().offset[e]) frame.need(*columns, e);
  experts_->run(frame.threads(), rows.numbers(), frame.read(tokens_),
                residual_.exists() ? frame.read(residual_) : nullptr, frame.write(to()));
}

namespace {

// Row-major C [m,n] = A [m,k] B [k,n] on this thread, with A transposed in memory, [k,m], or not; added to C, or not.
void multiply(bool transposed, const float* a, int64_t m, int64_t k, const float* b, int64_t n, bool accumulate,
              float* c) {
  thread_local cpu::Workspace panel, blocks;
  const cpu::Kernels& kernel = cpu::kernels();
  cpu::Gemm p;
  p.m = m, p.n = n, p.k = k;
  if (transposed) {
    p.a = a, p.a_ld = m, p.a_transposed = true;
  } else {
    float* const rows = blocks.floats(cpu::blocks_floats(k, m));
    cpu::to_blocks(a, m, k, rows);
    p.a = rows, p.a_block = m * cpu::kBlockLd;
  }
  p.b = b, p.b_ld = n;
  p.c = c, p.c_ld = n;
  p.accumulate = accumulate;
  kernel.product(p, panel.floats(kernel.panel_floats));
}

}  // namespace

// combine * experts(dispatch^T * tokens), image by image. Rows of slots are grouped by expert: [E,B,slots].
void ExpertsStep::mix(Frame& frame, const Routing& routing) const {
  const int64_t images = frame.images(), per_image = tokens_.shape.rows(), width = tokens_.shape.columns,
                outputs = to().shape.columns, experts = routing.experts, slots = routing.slots, all = experts * slots;
  thread_local cpu::Workspace in_space, out_space, by_image_space;
  thread_local Array<int64_t> offsets;
  float* const in = in_space.floats(images * all * width);
  float* const out = out_space.floats(images * all * outputs);
  float* const by_image = by_image_space.floats(images * all * std::max(width, outputs));
  const float* const tokens = frame.read(tokens_);
  cpu::run_tasks(frame.threads(), images, [&](int64_t image, const auto&) {
    float* const mixed = by_image + image * all * width;
    multiply(true, routing.scores.data() + image * per_image * all, all, per_image, tokens + image * per_image * width,
             width, false, mixed);
    for (int64_t e = 0; e < experts; ++e)
      std::copy_n(mixed + e * slots * width, slots * width, in + (e * images + image) * slots * width);
  });
  offsets.resize(experts + 1);
  for (int64_t e = 0; e <= experts; ++e) offsets[e] = e * images * slots;
  experts_->run_rows(frame.threads(), in, offsets.data(), out);
  float* const y = frame.write(to());
  if (residual_.exists()) std::copy_n(frame.read(residual_), images * per_image * outputs, y);
  cpu::run_tasks(frame.threads(), images, [&](int64_t image, const auto&) {
    float* const of_image = by_image + image * all * outputs;
    for (int64_t e = 0; e < experts; ++e)
      std::copy_n(out + (e * images + image) * slots * outputs, slots * outputs, of_image + e * slots * outputs);
    multiply(false, routing.combine.data() + image * per_image * all, per_image, all, of_image, outputs,
             residual_.exists(), y + image * per_image * outputs);
  });
}

void SharedExpertsStep::run(Frame& frame) const {
  const int64_t tokens = frame.images() * tokens_.shape.rows(), count = experts_->count();
  thread_local Routing routing;
  thread_local ExpertRows rows;
  thread_local Array<int64_t> chosen;
  routing.start({.images = tokens, .per_image = 1}, count);
  chosen.resize(tokens * count);
  for (int64_t i = 0; i < chosen.size(); ++i) chosen[i] = i % count;
  routing.choose_per_token(chosen.data(), count);
  std::fill_n(routing.gate.data(), routing.assignments(), 1.0F);
  routing.keep_all();
  rows.set(routing, 1);
  experts_->run(frame.threads(), rows.numbers(), frame.read(tokens_),
                residual_.exists() ? frame.read(residual_) : nullptr, frame.write(to()));
}

namespace {

// Reads or writes experts and what they read. Returns the rows that they have of an image.
int64_t visit_experts(Fields& fields, Value& tokens, Value& residual, std::unique_ptr<Experts>& experts, Value to) {
  fields.value("tokens", tokens);
  fields.value("residual", residual, /*required=*/false);
  fields.part("experts", [&] { visit_kind(fields, expert_kinds(), experts); });
  const int64_t rows = tokens.shape.numbers() / experts->width(), outputs = rows * experts->outputs();
  fields.require(rows * experts->width() == tokens.shape.numbers() && to.shape.numbers() == outputs &&
                     (!residual.exists() || residual.shape.numbers() == outputs),
                 "rows as wide as the experts' inputs and outputs");
  return rows;
}

}  // namespace

void ExpertsStep::visit_fields(Fields& fields) {
  fields.text("layer", layer_);
  const int64_t rows = visit_experts(fields, tokens_, residual_, experts_, to());
  fields.routing("routing", routing_, rows, experts_->count());
  fields.number("tokens_read", tokens_read_, {1, kMaxFieldNumber});
}

void SharedExpertsStep::visit_fields(Fields& fields) {
  fields.always_used([&] {
    const int64_t rows = visit_experts(fields, tokens_, residual_, experts_, to());
    fields.require(rows == tokens_.shape.rows(), "a row for each token");
  });
}

namespace {

// The decision about the first `count` tokens of each image.
OnnxRouting about_first_tokens(OnnxGraph& graph, const OnnxRouting& routing, int64_t count) {
  OnnxRouting first = routing;
  first.tokens = count;
  first.experts = graph.slice(routing.experts, 1, 0, count), first.gates = graph.slice(routing.gates, 1, 0, count);
  return first;
}

// combine * experts(dispatch^T * tokens)
OnnxName export_mix(OnnxGraph& graph, const Experts& experts, const OnnxName& tokens, const OnnxRouting& routing) {
  const int64_t count = experts.count(), slots = routing.slots / count;
  const OnnxName mixed = graph.matmul(graph.transpose(routing.dispatch, {0, 2, 1}), tokens);  // [N,P,D]
  std::vector<OnnxName> made;
  for (int64_t e = 0; e < count; ++e) {
    const OnnxName own = graph.reshape(graph.slice(mixed, 1, e * slots, (e + 1) * slots), {-1, experts.width()});
    made.push_back(graph.reshape(experts.export_expert(graph, e, own), {-1, slots, experts.outputs()}));
  }
  return graph.matmul(routing.combine, graph.concat(made, 1));
}

}  // namespace

void ExpertsStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const OnnxRouting& routing = onnx.routings.at(routing_);
  const int64_t outputs = experts_->outputs();
  const OnnxName tokens = onnx.rows(tokens_, experts_->width());
  OnnxName y;
  if (routing.slots > 0) {
    y = export_mix(graph, *experts_, tokens, routing);
  } else if (tokens_read_ < routing.tokens) {
    const OnnxName first = experts_->export_onnx(graph, graph.slice(tokens, 1, 0, tokens_read_),
                                                 about_first_tokens(graph, routing, tokens_read_));
    y = graph.node("Pad", {first, graph.integers({0, 0, 0, 0, routing.tokens - tokens_read_, 0})});
  } else {
    y = experts_->export_onnx(graph, tokens, routing);
  }
  if (residual_.exists()) y = graph.add(y, onnx.rows(residual_, outputs));
  onnx.set_rows(to(), y, outputs);
}

void SharedExpertsStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  OnnxRouting all;
  all.tokens = tokens_.shape.rows(), all.k = all.count = experts_->count();
  OnnxName y = experts_->export_onnx(graph, onnx.rows(tokens_), all);
  if (residual_.exists()) y = graph.add(y, onnx.rows(residual_, experts_->outputs()));
  onnx.set_rows(to(), y, experts_->outputs());
}

}  // namespace sparsight::engine
