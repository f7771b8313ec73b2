// A transformer block for inference: packed weights, fused epilogues, no autograd and no torch. Three orders of
// work: many images are split among the threads, each of which takes its images through the whole block while they are
// in its cache; few images are split by rows if the weights are small, so that threads wait for each other twice only,
// else by columns of each layer, so that each reads its part of the weights. All give the same bits. Letters:
// moe/axes.md; R rows (tokens of all images, or of those computed).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

class Fields;
class OnnxGraph;

struct Norm {
  std::vector<float> weight, bias;  // [D]
  float epsilon = 0;
  void visit(Fields& fields, int64_t width);
};

// norm2, fc1 and fc2 of a dense block. Without: a block whose MLP is computed elsewhere, as experts are.
struct Mlp {
  Norm norm;
  cpu::PackedLinear fc1, fc2;
  Activation activation = Activation::gelu;
};

// Norms of the queries and keys of each head, [D / heads].
struct QkNorm {
  Norm q, k;
};

struct TransformerBlockWeights {
  Norm norm1;
  cpu::PackedLinear qkv, proj;
  int64_t heads = 1;
  std::optional<Mlp> mlp;
  std::optional<QkNorm> qk_norm = {};
};

// The tokens of a batch; the block computes the first `outputs` of each image, which attend to all.
struct BatchTokens {
  int64_t images = 0, tokens = 0, outputs = 0;
};

class TransformerBlock {
 public:
  TransformerBlock() = default;
  explicit TransformerBlock(TransformerBlockWeights weights) : w_(std::move(weights)) {}

  // x: [images * tokens, D]. Writes y = x + proj(attention(norm1(x))) and, with an MLP, y + fc2(act(fc1(norm2(y)))),
  // [images * outputs, D].
  void run(cpu::Threads& threads, const float* x, float* y, const BatchTokens& batch) const;

  bool has_mlp() const { return w_.mlp.has_value(); }
  bool has_qk_norm() const { return w_.qk_norm.has_value(); }
  WeightType type() const { return w_.qkv.type(); }
  int64_t bytes() const;  // of the packed weights
  void visit(Fields& fields, int64_t width);
  // x: [B,tokens,D] -> [B,outputs,D]
  std::string export_onnx(OnnxGraph& graph, const std::string& x, int64_t tokens, int64_t outputs) const;

 private:
  std::string export_attention(OnnxGraph& graph, const std::string& x, int64_t tokens, int64_t outputs) const;
  // The block, and its parts: `mixed` [R,D] of x, and y [R,D] of x's rows and the mixed values.
  void whole_images(cpu::Threads& threads, const float* x, float* y, const BatchTokens& batch, int64_t at_once) const;
  void attend_whole_images(cpu::Threads& threads, const float* x, const BatchTokens& batch, int64_t at_once,
                           float* mixed) const;
  void attend_by_rows(cpu::Threads& threads, const float* x, const BatchTokens& batch, float* mixed) const;
  void attend_by_columns(cpu::Threads& threads, const float* x, const BatchTokens& batch, float* mixed) const;
  void finish_by_rows(cpu::Threads& threads, const float* x, const float* mixed, int64_t rows, float* y) const;
  void finish_by_columns(cpu::Threads& threads, const float* x, const float* mixed, int64_t rows, float* y) const;

  // On the calling thread: qkv [R,3D] of x [R,D], the mixed values of images, and y [R,D] of x and them.
  void project_qkv(const float* x, int64_t rows, float* qkv) const;
  void attend_images(const float* x, const BatchTokens& batch, float* mixed) const;
  void after_attention(const float* x, const float* mixed, int64_t rows, float* y) const;
  void attend_head(float* qkv, const BatchTokens& batch, int64_t head, float* mixed) const;
  void attend_all(cpu::Threads& threads, float* qkv, const BatchTokens& batch, float* mixed) const;
  void normalise_head(float* qkv, const BatchTokens& batch, int64_t head) const;

  int64_t width() const { return w_.proj.outputs(); }
  TransformerBlockWeights w_;
};

}  // namespace sparsight::engine
