#include "sparsight/kernels/conv/patch_linear.h"

#include <array>

#include "sparsight/kernels/gemm/row_products.h"

namespace sparsight::cpu {
namespace {

// The patches of all images, as rows.
struct Patches {
  StridedImages images;
  int64_t side, per_image;
  void gather(const RowTask& task, float* rows) const {
    for (int64_t i = 0; i < task.count; ++i)
      gather_patch(images, side, (task.first + i) / per_image, (task.first + i) % per_image, rows + i * kBlockLd,
                   /*block=*/task.count * kBlockLd);
  }
  void prefetch(const RowTask&, Gemm&) const {}
};

// Rows of results as the patches of images.
struct PatchesOut {
  Patches patches;
  float* pixels;
  void start(const RowTask&, Gemm& p) const {
    p.c = row_scratch().results.floats(p.m * p.n);
    p.c_ld = p.n;
  }
  void finish(const RowTask& task, const Gemm& p) const {
    for (int64_t i = 0; i < task.count; ++i)
      scatter_patch(p.c + i * p.c_ld, patches.images, patches.side, (task.first + i) / patches.per_image,
                    (task.first + i) % patches.per_image, pixels);
  }
};

struct TokensOut {
  float* tokens;
  void start(const RowTask& task, Gemm& p) const {
    p.c = tokens + task.first * p.n;
    p.c_ld = p.n;
  }
  void finish(const RowTask&, const Gemm&) const {}
};

int64_t patch_numbers(const PatchProduct& p) { return p.images.channels * p.side * p.side; }

// [C P P,O]
WeightView weight_matrix(const PatchProduct& p) {
  return {const_cast<float*>(p.weight), patch_numbers(p), p.outputs, /*transposed=*/true};
}

}  // namespace

void patch_linear(Threads& threads, const PatchProduct& p, float* tokens) {
  const Patches patches{p.images, p.side, p.images.patches(p.side)};
  const std::array<int64_t, 2> offset{0, p.images.images * patches.per_image};
  multiply_rows(threads, {offset.data(), 1, weight_matrix(p), p.bias, p.bf16}, patches, TokensOut{tokens});
}

void patch_linear_backward(Threads& threads, const PatchProduct& p, const float* grad, float* pixels) {
  const Patches patches{p.images, p.side, p.images.patches(p.side)};
  const std::array<int64_t, 2> offset{0, p.images.images * patches.per_image};
  multiply_rows(threads, {offset.data(), 1, weight_matrix(p).t(), nullptr, p.bf16}, PlainRows{grad, p.outputs},
                PatchesOut{patches, pixels});
}

void gather_patches(Threads& threads, const StridedImages& images, int64_t side, float* rows) {
  const int64_t per_image = images.patches(side), depth = images.channels * side * side;
  run_ranges(threads, images.images * per_image, /*grain=*/8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      gather_patch(images, side, r / per_image, r % per_image, rows + r * depth, kBlock);
  });
}

}  // namespace sparsight::cpu
