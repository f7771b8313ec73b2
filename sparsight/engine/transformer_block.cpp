#include "sparsight/engine/transformer_block.h"

#include <algorithm>
#include <cmath>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/engine/row_grid.h"
#include "sparsight/kernels/attention/attention_task.h"
#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

using cpu::kBlock;
using cpu::kBlockLd;

constexpr int64_t kSmallBytes = int64_t{512} << 10;  // weights up to this size are in the cache of each core

// Scratch of a thread; `panel` also of products.
struct BlockSpace {
  cpu::Workspace in, qkv, mixed, hidden, panel, attention;
};
BlockSpace& block_space() {
  thread_local BlockSpace scratch;
  return scratch;
}
// Each calling thread has one, which its tasks share.
struct SharedSpace {
  cpu::Workspace qkv, mixed, hidden, residual;
};
SharedSpace& shared_space() {
  thread_local SharedSpace scratch;
  return scratch;
}

// rows: of the product, in blocks. Writes columns of the result to `to`, [rows, outputs] with a stride of ld, or in
// blocks of `rows` rows if ld is 0.
struct Product {
  const cpu::PackedLinear& linear;
  const float* in;
  int64_t rows;
  float* to;
  int64_t ld;
};

// in: `rows` rows in blocks. to: [rows, columns of p] with a stride of ld.
void multiply(cpu::Gemm p, const float* in, int64_t rows, float* to, int64_t ld) {
  const cpu::Kernels& kernel = cpu::kernels();
  p.m = rows;
  p.a = in, p.a_block = rows * kBlockLd;
  p.c = to, p.c_ld = ld;
  kernel.product(p, block_space().panel.floats(kernel.panel_floats));
}

void multiply(const Product& product, Columns columns, std::optional<Activation> activation, bool accumulate) {
  const bool blocks = product.ld == 0;
  for (int64_t first = columns.first, end = columns.first + columns.count; first < end;) {
    const int64_t count = blocks ? std::min(end - first, kBlock - first % kBlock) : end - first;
    cpu::Gemm p = product.linear.gemm(first, count);
    if (blocks) p.c_block = product.rows * kBlockLd;
    p.accumulate = accumulate;
    p.activates = activation.has_value();
    if (activation) p.activation = *activation;
    multiply(p, product.in, product.rows, product.to + first / kBlock * p.c_block + first % kBlock,
             blocks ? kBlockLd : product.ld);
    first += count;
  }
}

// y += what an MLP makes of the rows `in`, a block of the hidden layer at a time.
void add_mlp(const Mlp& mlp, const float* in, int64_t rows, float* y) {
  const int64_t width = mlp.fc2.outputs(), all = mlp.fc1.outputs();
  float* hidden = block_space().hidden.floats(cpu::blocks_floats(kBlock, rows));
  for (int64_t first = 0; first < all; first += kBlock) {
    const int64_t count = std::min(kBlock, all - first);
    cpu::Gemm up = mlp.fc1.gemm(first, count);
    up.activates = true, up.activation = mlp.activation;
    cpu::Gemm down = mlp.fc2.gemm(0, width, first, count);
    down.accumulate = true;
    multiply(up, in, rows, hidden, kBlockLd);
    multiply(down, hidden, rows, y, width);
  }
}

void normalise(const Norm& norm, const float* x, int64_t rows, float* to) {
  const auto width = static_cast<int64_t>(norm.weight.size());
  for (int64_t r = 0; r < rows; ++r)
    cpu::kernels().layer_norm(x + r * width, norm.weight.data(), norm.bias.data(), norm.epsilon, width,
                              to + r * kBlockLd, rows * kBlockLd);
}

// to = from + bias in some columns of [rows,width].
void add_bias(const float* from, const float* bias, Columns columns, int64_t rows, int64_t width, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = from + r * width + columns.first;
    float* y = to + r * width + columns.first;
    for (int64_t c = 0; c < columns.count; ++c) y[c] = x[c] + bias[columns.first + c];
  }
}

// Scratch of the calling thread for rows in blocks.
float* rows_in_blocks(int64_t width, int64_t rows) { return block_space().in.floats(cpu::blocks_floats(width, rows)); }

// The tokens of x [images * tokens, D] that the block computes: x itself, or a copy of them.
const float* first_rows(const float* x, const BatchTokens& batch, int64_t width) {
  if (batch.outputs == batch.tokens) return x;
  const int64_t floats = batch.outputs * width;
  float* const rows = shared_space().residual.floats(batch.images * floats);
  for (int64_t i = 0; i < batch.images; ++i) std::copy_n(x + i * batch.tokens * width, floats, rows + i * floats);
  return rows;
}

// Calls body(first image, tokens of `at_once` images) on any thread, for all images.
template <class Body>
void for_images(cpu::Threads& threads, const BatchTokens& batch, int64_t at_once, const Body& body) {
  cpu::run_tasks(threads, (batch.images + at_once - 1) / at_once, [&](int64_t task, const auto&) {
    const int64_t first = task * at_once;
    body(first, BatchTokens{std::min(at_once, batch.images - first), batch.tokens, batch.outputs});
  });
}

// Calls body(first row, rows) for as many parts as there are threads, if there are as many rows.
template <class Body>
void for_parts_of_rows(cpu::Threads& threads, int64_t rows, const Body& body) {
  const int64_t parts = std::min<int64_t>(threads.count(), rows);
  cpu::run_tasks(threads, parts, [&](int64_t part, const auto&) {
    const int64_t first = rows * part / parts;
    body(first, rows * (part + 1) / parts - first);
  });
}

}  // namespace

int64_t TransformerBlock::bytes() const {
  int64_t sum = w_.qkv.bytes() + w_.proj.bytes();
  if (w_.mlp) sum += w_.mlp->fc1.bytes() + w_.mlp->fc2.bytes();
  return sum;
}

void TransformerBlock::run(cpu::Threads& threads, const float* x, float* y, const BatchTokens& batch) const {
  const int64_t workers = threads.count(), images = batch.images, rows = images * batch.outputs;
  // Whole images if that keeps the threads evenly busy.
  const int64_t fitting = std::max<int64_t>(1, rows_at_once() / batch.tokens), rounds = images / (fitting * workers);
  const int64_t at_once = std::clamp<int64_t>(images / workers, 1, fitting);
  const bool whole = rounds >= 1 || images % workers == 0, small = bytes() <= kSmallBytes;
  if (whole && batch.outputs == batch.tokens) return whole_images(threads, x, y, batch, at_once);
  float* const mixed = shared_space().mixed.floats(rows * width());
  if (whole)
    attend_whole_images(threads, x, batch, at_once, mixed);
  else if (small)
    attend_by_rows(threads, x, batch, mixed);
  else
    attend_by_columns(threads, x, batch, mixed);
  const float* const residual = first_rows(x, batch, width());
  if (small)
    finish_by_rows(threads, residual, mixed, rows, y);
  else
    finish_by_columns(threads, residual, mixed, rows, y);
}

void TransformerBlock::project_qkv(const float* x, int64_t rows, float* qkv) const {
  float* const in = rows_in_blocks(width(), rows);
  normalise(w_.norm1, x, rows, in);
  multiply({w_.qkv, in, rows, qkv, 3 * width()}, {0, 3 * width()}, std::nullopt, false);
}

void TransformerBlock::after_attention(const float* x, const float* mixed, int64_t rows, float* y) const {
  const int64_t width = this->width();
  float* const in = rows_in_blocks(width, rows);
  cpu::to_blocks(mixed, rows, width, in);
  add_bias(x, w_.proj.bias(), {0, width}, rows, width, y);
  multiply({w_.proj, in, rows, y, width}, {0, width}, std::nullopt, true);
  if (!w_.mlp) return;
  const Mlp& mlp = *w_.mlp;
  normalise(mlp.norm, y, rows, in);
  add_bias(y, mlp.fc2.bias(), {0, width}, rows, width, y);
  add_mlp(mlp, in, rows, y);
}

// In place: a head's columns of qkv [S,3D] are read by its own task alone.
void TransformerBlock::normalise_head(float* qkv, const BatchTokens& batch, int64_t head) const {
  const int64_t width = this->width(), size = width / w_.heads;
  const auto normalise_rows = [&](const Norm& norm, float* rows, int64_t count) {
    for (int64_t r = 0; r < count; ++r, rows += 3 * width)
      cpu::kernels().layer_norm(rows, norm.weight.data(), norm.bias.data(), norm.epsilon, size, rows, kBlock);
  };
  normalise_rows(w_.qk_norm->q, qkv + head * size, batch.outputs);
  normalise_rows(w_.qk_norm->k, qkv + width + head * size, batch.tokens);
}

// qkv: [S,3D] of an image; mixed: [outputs,D], of which it writes the columns of the head.
void TransformerBlock::attend_head(float* qkv, const BatchTokens& batch, int64_t head, float* mixed) const {
  const int64_t width = this->width(), size = width / w_.heads, first = head * size;
  if (w_.qk_norm) normalise_head(qkv, batch, head);
  cpu::AttentionForward p;
  p.head = {qkv + first,
            qkv + width + first,
            qkv + 2 * width + first,
            3 * width,
            batch.tokens,
            size,
            1 / std::sqrt(static_cast<float>(size))};
  p.count = batch.outputs;
  p.out = mixed + first, p.out_ld = width;
  p.bf16 = type() == WeightType::bf16;
  p.scratch = block_space().attention.floats(cpu::attention_forward_floats(batch.tokens, size));
  cpu::kernels().attention_forward(p);
}

void TransformerBlock::attend_images(const float* x, const BatchTokens& batch, float* mixed) const {
  const int64_t width = this->width(), rows = batch.images * batch.tokens;
  float* const qkv = block_space().qkv.floats(rows * 3 * width);
  project_qkv(x, rows, qkv);
  for (int64_t image = 0; image < batch.images; ++image)
    for (int64_t head = 0; head < w_.heads; ++head)
      attend_head(qkv + image * batch.tokens * 3 * width, batch, head, mixed + image * batch.outputs * width);
}

void TransformerBlock::whole_images(cpu::Threads& threads, const float* x, float* y, const BatchTokens& batch,
                                    int64_t at_once) const {
  const int64_t width = this->width();
  for_images(threads, batch, at_once, [&](int64_t first, const BatchTokens& some) {
    const int64_t rows = some.images * some.tokens, start = first * some.tokens * width;
    float* const mixed = block_space().mixed.floats(rows * width);
    attend_images(x + start, some, mixed);
    after_attention(x + start, mixed, rows, y + start);
  });
}

void TransformerBlock::attend_whole_images(cpu::Threads& threads, const float* x, const BatchTokens& batch,
                                           int64_t at_once, float* mixed) const {
  const int64_t width = this->width();
  for_images(threads, batch, at_once, [&](int64_t first, const BatchTokens& some) {
    attend_images(x + first * some.tokens * width, some, mixed + first * some.outputs * width);
  });
}

void TransformerBlock::attend_by_rows(cpu::Threads& threads, const float* x, const BatchTokens& batch,
                                      float* mixed) const {
  const int64_t width = this->width(), rows = batch.images * batch.tokens;
  float* const qkv = shared_space().qkv.floats(rows * 3 * width);
  for_parts_of_rows(threads, rows, [&](int64_t first, int64_t count) {
    project_qkv(x + first * width, count, qkv + first * 3 * width);
  });
  attend_all(threads, qkv, batch, mixed);
}

void TransformerBlock::finish_by_rows(cpu::Threads& threads, const float* x, const float* mixed, int64_t rows,
                                      float* y) const {
  const int64_t width = this->width();
  for_parts_of_rows(threads, rows, [&](int64_t first, int64_t count) {
    after_attention(x + first * width, mixed + first * width, count, y + first * width);
  });
}

void TransformerBlock::attend_all(cpu::Threads& threads, float* qkv, const BatchTokens& batch, float* mixed) const {
  const int64_t width = this->width();
  cpu::run_tasks(threads, batch.images * w_.heads, [&](int64_t task, const auto&) {
    const int64_t image = task / w_.heads;
    attend_head(qkv + image * batch.tokens * 3 * width, batch, task % w_.heads, mixed + image * batch.outputs * width);
  });
}

// Each layer reads what all tasks of the one before have written. Rows in blocks belong to groups of rows.
void TransformerBlock::attend_by_columns(cpu::Threads& threads, const float* x, const BatchTokens& batch,
                                         float* mixed) const {
  const int64_t width = this->width(), rows = batch.images * batch.tokens;
  float* const qkv = shared_space().qkv.floats(rows * 3 * width);
  RowGrid(threads, rows, 3 * width).run([&](int64_t first, int64_t count, Columns columns) {
    float* const in = rows_in_blocks(width, count);
    normalise(w_.norm1, x + first * width, count, in);
    multiply({w_.qkv, in, count, qkv + first * 3 * width, 3 * width}, columns, std::nullopt, false);
  });
  attend_all(threads, qkv, batch, mixed);
}

void TransformerBlock::finish_by_columns(cpu::Threads& threads, const float* x, const float* mixed, int64_t rows,
                                         float* y) const {
  const int64_t width = this->width();
  RowGrid(threads, rows, width).run([&](int64_t first, int64_t count, Columns columns) {
    float* const in = rows_in_blocks(width, count);
    cpu::to_blocks(mixed + first * width, count, width, in);
    add_bias(x + first * width, w_.proj.bias(), columns, count, width, y + first * width);
    multiply({w_.proj, in, count, y + first * width, width}, columns, std::nullopt, true);
  });
  if (!w_.mlp) return;
  const Mlp& mlp = *w_.mlp;
  const int64_t hidden_width = mlp.fc1.outputs();
  float* const hidden = shared_space().hidden.floats(cpu::blocks_floats(hidden_width, rows));
  const auto hidden_block = [&](int64_t first) { return hidden + cpu::blocks_floats(hidden_width, first); };
  RowGrid(threads, rows, hidden_width).run([&](int64_t first, int64_t count, Columns columns) {
    float* const in = rows_in_blocks(width, count);
    normalise(mlp.norm, y + first * width, count, in);
    multiply({mlp.fc1, in, count, hidden_block(first), 0}, columns, mlp.activation, false);
  });
  RowGrid(threads, rows, width).run([&](int64_t first, int64_t count, Columns columns) {
    add_bias(y + first * width, mlp.fc2.bias(), columns, count, width, y + first * width);
    multiply({mlp.fc2, hidden_block(first), count, y + first * width, width}, columns, std::nullopt, true);
  });
}

void Norm::visit(Fields& fields, int64_t width) {
  fields.floats("weight", weight, width);
  fields.floats("bias", bias, width);
  fields.epsilon("epsilon", epsilon);
}

void TransformerBlock::visit(Fields& fields, int64_t width) {
  fields.size("heads", w_.heads);
  fields.require(width % w_.heads == 0, "heads of equal widths");
  fields.part("norm1", [&] { w_.norm1.visit(fields, width); });
  fields.linear("qkv", w_.qkv, width, 3 * width);
  fields.linear("proj", w_.proj, width, width);
  if (w_.qk_norm) {  // the kind of the step says so
    fields.part("q_norm", [&] { w_.qk_norm->q.visit(fields, width / w_.heads); });
    fields.part("k_norm", [&] { w_.qk_norm->k.visit(fields, width / w_.heads); });
  }
  fields.optional("has_mlp", w_.mlp, [&](Mlp& mlp) {
    fields.part("norm2", [&] { mlp.norm.visit(fields, width); });
    fields.linear("fc1", mlp.fc1, width, Fields::kAny);
    fields.linear("fc2", mlp.fc2, mlp.fc1.outputs(), width);
    fields.choice("activation", mlp.activation, kActivationNames);
  });
}

OnnxName TransformerBlock::export_attention(OnnxGraph& graph, const OnnxName& x, int64_t tokens,
                                            int64_t outputs) const {
  const int64_t size = width() / w_.heads;
  const OnnxName normed = onnx_norm(graph, w_.norm1, x);
  const std::vector<OnnxName> qkv = graph.nodes("Split", {onnx_linear(graph, "qkv", normed, w_.qkv)}, 3, {{"axis", 2}});
  const auto heads = [&](const OnnxName& part, int64_t rows, const std::vector<int64_t>& order, const Norm* norm) {
    const OnnxName split = graph.reshape(part, {-1, rows, w_.heads, size});
    return graph.transpose(norm ? onnx_norm(graph, *norm, split) : split, order);
  };
  const Norm* const q_norm = w_.qk_norm ? &w_.qk_norm->q : nullptr;
  const Norm* const k_norm = w_.qk_norm ? &w_.qk_norm->k : nullptr;
  const OnnxName asked = outputs == tokens ? qkv[0] : graph.slice(qkv[0], 1, 0, outputs);
  const OnnxName products =
      graph.matmul(heads(asked, outputs, {0, 2, 1, 3}, q_norm), heads(qkv[1], tokens, {0, 2, 3, 1}, k_norm));
  const OnnxName weights =
      graph.softmax(graph.multiply(products, graph.number(1 / std::sqrt(static_cast<float>(size)))), 3);
  const OnnxName mixed =
      graph.transpose(graph.matmul(weights, heads(qkv[2], tokens, {0, 2, 1, 3}, nullptr)), {0, 2, 1, 3});
  return onnx_linear(graph, "proj", graph.reshape(mixed, {-1, outputs, width()}), w_.proj);
}

OnnxName TransformerBlock::export_onnx(OnnxGraph& graph, const OnnxName& x, int64_t tokens, int64_t outputs) const {
  const OnnxName first = outputs == tokens ? x : graph.slice(x, 1, 0, outputs);
  const OnnxName y = graph.add(first, export_attention(graph, x, tokens, outputs));
  if (!w_.mlp) return y;
  const Mlp& mlp = *w_.mlp;
  const OnnxName hidden =
      onnx_activation(graph, mlp.activation, onnx_linear(graph, "fc1", onnx_norm(graph, mlp.norm, y), mlp.fc1));
  return graph.add(y, onnx_linear(graph, "fc2", hidden, mlp.fc2));
}

}  // namespace sparsight::engine
