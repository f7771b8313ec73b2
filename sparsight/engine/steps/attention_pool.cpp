#include "sparsight/engine/steps/attention_pool.h"

#include <cmath>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "sparsight/kernels/attention/attention_task.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {

// In fp32 for weights of any type: there is one query.
void AttentionPoolStep::run(Frame& frame) const {
  const int64_t width = to().shape.columns, size = width / heads_, rows = from_.shape.rows(),
                prefix = from_.shape.prefix, patches = rows - prefix;
  const float* const kv = frame.read(from_);
  float* const y = frame.write(to());
  cpu::run_tasks(frame.threads(), frame.images() * heads_, [&](int64_t task, const auto&) {
    thread_local cpu::Workspace scratch;
    const int64_t image = task / heads_, first = task % heads_ * size;
    const float* const keys = kv + (image * rows + prefix) * 2 * width + first;
    cpu::AttentionForward p;
    p.head = {
        query_.data() + first, keys, keys + width, 2 * width, patches, size, 1 / std::sqrt(static_cast<float>(size))};
    p.count = 1;
    p.out = y + image * width + first, p.out_ld = width;
    p.scratch = scratch.floats(cpu::attention_forward_floats(patches, size));
    cpu::kernels().attention_forward(p);
  });
}

void AttentionPoolStep::visit_fields(Fields& fields) {
  fields.value("from", from_);
  fields.size("heads", heads_);
  const int64_t width = to().shape.columns;
  fields.require(to().shape.rows() == 1 && from_.shape.columns == 2 * width && width % heads_ == 0,
                 "keys and values of heads of equal widths, and a vector of them");
  fields.floats("query", query_, width);
}

void AttentionPoolStep::export_onnx(OnnxExport& onnx) const {
  OnnxGraph& graph = onnx.graph;
  const int64_t width = to().shape.columns, size = width / heads_, rows = from_.shape.rows(),
                prefix = from_.shape.prefix;
  const OnnxName all = onnx.rows(from_), patches = prefix == 0 ? all : graph.slice(all, 1, prefix, rows);
  const std::vector<OnnxName> kv = graph.nodes("Split", {patches}, 2, {{"axis", 2}});
  const auto heads = [&](const OnnxName& part, const std::vector<int64_t>& order) {
    return graph.transpose(graph.reshape(part, {-1, rows - prefix, heads_, size}), order);
  };
  const OnnxName query = graph.floats("query", query_, {1, heads_, 1, size});
  const OnnxName scores = graph.multiply(graph.matmul(query, heads(kv[0], {0, 2, 3, 1})),
                                         graph.number(1 / std::sqrt(static_cast<float>(size))));
  const OnnxName mixed = graph.matmul(graph.softmax(scores, 3), heads(kv[1], {0, 2, 1, 3}));  // [B,H,1,d]
  onnx.set_rows(to(), graph.reshape(mixed, {-1, 1, width}));
}

}  // namespace sparsight::engine
