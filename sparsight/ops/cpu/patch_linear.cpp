#include "sparsight/ops/cpu/patch_linear.h"

#include <algorithm>
#include <array>

#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/row_products.h"

namespace sparsight::cpu {
namespace {

// The patches of all images, as rows.
struct Patches {
  StridedImages images;
  int64_t side, per_image;
  void gather(const RowTask& task, float* rows, int64_t block) const {
    for (int64_t i = 0; i < task.count; ++i)
      gather_patch(images, side, (task.first + i) / per_image, (task.first + i) % per_image, rows + i * kBlockLd,
                   block);
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

Patches patches_of(const at::Tensor& images, int64_t side) {
  const StridedImages from = strided_images(images);
  return {from, side, from.patches(side)};
}

// [C P P,O]
WeightView matrix_of(const at::Tensor& weight) {
  return {const_cast<float*>(weight.const_data_ptr<float>()), weight[0].numel(), weight.size(0), /*transposed=*/true};
}

}  // namespace

StridedImages strided_images(const at::Tensor& images) {
  return {images.const_data_ptr<float>(),
          images.size(0),
          images.size(1),
          images.size(2),
          images.size(3),
          images.stride(0),
          images.stride(1),
          images.stride(2),
          images.stride(3)};
}

at::Tensor patch_linear_forward(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias) {
  const Patches patches = patches_of(images, weight.size(2));
  const std::array<int64_t, 2> offset{0, images.size(0) * patches.per_image};
  at::Tensor tokens = empty_from_arena({images.size(0), patches.per_image, weight.size(0)});
  multiply_rows({offset.data(), 1, matrix_of(weight), bias.const_data_ptr<float>()}, patches,
                TokensOut{tokens.data_ptr<float>()});
  return tokens;
}

at::Tensor patch_linear_backward(const at::Tensor& grad, const at::Tensor& images, const at::Tensor& weight) {
  const Patches patches = patches_of(images, weight.size(2));
  const std::array<int64_t, 2> offset{0, images.size(0) * patches.per_image};
  at::Tensor out = at::empty(images.sizes(), images.options());
  multiply_rows({offset.data(), 1, matrix_of(weight).t()}, PlainRows{grad.const_data_ptr<float>(), weight.size(0)},
                PatchesOut{patches, out.data_ptr<float>()});
  return out;
}

at::Tensor gather_patches(const at::Tensor& images, int64_t side) {
  const Patches patches = patches_of(images, side);
  const int64_t rows = images.size(0) * patches.per_image, depth = images.size(1) * side * side;
  at::Tensor out = empty_from_arena({rows, depth});
  float* const to = out.data_ptr<float>();
  run_ranges(rows, /*grain=*/8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      gather_patch(patches.images, side, r / patches.per_image, r % patches.per_image, to + r * depth, kBlock);
  });
  return out;
}

}  // namespace sparsight::cpu
