// A patch embedding for inference: packed weights, patches gathered where they are multiplied, positions added in the
// same pass, no autograd and no torch. The bits depend neither on the number of threads nor on the batch.
// Letters: moe/axes.md; S patches of an image, P the side of one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sparsight/kernels/conv/patch_rows.h"
#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::engine {

// The token of patch s of image b, [D], is at tokens + b * image_stride + s * D.
struct PatchTokens {
  float* tokens = nullptr;
  int64_t image_stride = 0;
};

class Fields;
class OnnxGraph;

class PatchEmbedding {
 public:
  PatchEmbedding() = default;
  // projection: of the C * P * P values of a patch in the order (channel, row, column).
  PatchEmbedding(cpu::PackedLinear projection, int64_t patch) : projection_(std::move(projection)), patch_(patch) {}

  // positions: [S,D], added to the tokens, or null.
  void run(cpu::Threads& threads, const cpu::StridedImages& images, const float* positions,
           const PatchTokens& to) const;

  WeightType type() const { return projection_.type(); }
  int64_t bytes() const { return projection_.bytes(); }  // of the packed weights
  int64_t patch() const { return patch_; }
  void visit(Fields& fields, int64_t channels, int64_t width);
  std::string export_onnx(OnnxGraph& graph, const std::string& images) const;  // [B,C,H,W] -> [B,D,H/P,W/P]

 private:
  cpu::PackedLinear projection_;
  int64_t patch_ = 1;
};

}  // namespace sparsight::engine
