#include "sparsight/engine/patch_embedding.h"

#include <algorithm>

#include "sparsight/engine/file/fields.h"
#include "sparsight/engine/onnx/onnx_layers.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::engine {
namespace {

using cpu::kBlock;
using cpu::kBlockLd;

constexpr int64_t kPatchesAtOnce = 64;  // of a task: with 3 x 32 x 32 values each they stay in the L2 cache

struct Scratch {
  cpu::Workspace in, panel;
};
Scratch& scratch() {
  thread_local Scratch buffers;
  return buffers;
}

// How many tasks the patches of an image are split into: so that all threads have work, the same for each if there are
// few tasks.
int64_t count_parts(int64_t patches, int64_t images, int64_t threads) {
  int64_t parts = (patches + kPatchesAtOnce - 1) / kPatchesAtOnce;
  while (parts < patches && images * parts < 4 * threads && images * parts % threads != 0) ++parts;
  return parts;
}

}  // namespace

void PatchEmbedding::run(cpu::Threads& threads, const cpu::StridedImages& images, const float* positions,
                         const PatchTokens& to) const {
  const int64_t patches = images.patches(patch_), width = projection_.outputs();
  const int64_t parts = count_parts(patches, images.images, threads.count());
  cpu::run_tasks(threads, images.images * parts, [&](int64_t task, const auto&) {
    const int64_t image = task / parts, part = task % parts;
    const int64_t first = patches * part / parts, rows = patches * (part + 1) / parts - first;
    const int64_t block = rows * kBlockLd;
    float* const in = scratch().in.floats(cpu::count_blocks(projection_.inputs()) * block);
    float* const out = to.tokens + image * to.image_stride + first * width;
    for (int64_t r = 0; r < rows; ++r) {
      cpu::gather_patch(images, patch_, image, first + r, in + r * kBlockLd, block);
      float* const token = out + r * width;
      std::copy_n(projection_.bias(), width, token);
      if (positions)
        for (int64_t c = 0; c < width; ++c) token[c] += positions[(first + r) * width + c];
    }
    const cpu::Kernels& kernel = cpu::kernels();
    cpu::Gemm product = projection_.gemm(0, width);
    product.m = rows;
    product.a = in, product.a_block = block;
    product.c = out, product.c_ld = width, product.c_block = kBlock;
    product.accumulate = true;
    kernel.product(product, scratch().panel.floats(kernel.panel_floats));
  });
}

void PatchEmbedding::visit(Fields& fields, int64_t channels, int64_t width) {
  fields.number("patch", patch_, {1, 4096});
  fields.linear("projection", projection_, channels * patch_ * patch_, width);
}

OnnxName PatchEmbedding::export_onnx(OnnxGraph& graph, const OnnxName& images) const {
  const int64_t width = projection_.outputs(), channels = projection_.inputs() / (patch_ * patch_);
  const OnnxName weight =
      onnx_weight(graph, "projection.weight", projection_.stored().view(), {width, channels, patch_, patch_}, 0);
  const OnnxName bias = graph.floats("projection.bias", {projection_.bias(), projection_.bias() + width}, {width});
  return graph.node("Conv", {images, weight, bias}, {{"strides", std::vector<int64_t>{patch_, patch_}}});
}

}  // namespace sparsight::engine
