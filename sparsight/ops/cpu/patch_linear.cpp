#include "sparsight/ops/cpu/patch_linear.h"

#include <ATen/ops/empty.h>

#include "sparsight/kernels/conv/patch_linear.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/weight_view.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {
namespace {

PatchProduct patch_product(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias) {
  return {.images = strided_images(images),
          .side = weight.size(2),
          .outputs = weight.size(0),
          .weight = weight.const_data_ptr<float>(),
          .bias = float_data(bias),
          .bf16 = multiplies_bf16()};
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
  const PatchProduct product = patch_product(images, weight, bias);
  at::Tensor tokens = empty_from_arena({images.size(0), product.images.patches(product.side), product.outputs});
  patch_linear(torch_threads(), product, tokens.data_ptr<float>());
  return tokens;
}

at::Tensor patch_linear_backward(const at::Tensor& grad, const at::Tensor& images, const at::Tensor& weight) {
  at::Tensor out = at::empty(images.sizes(), images.options());
  patch_linear_backward(torch_threads(), patch_product(images, weight, {}), grad.const_data_ptr<float>(),
                        out.data_ptr<float>());
  return out;
}

at::Tensor gather_patches(const at::Tensor& images, int64_t side) {
  const StridedImages from = strided_images(images);
  at::Tensor out = empty_from_arena({from.images * from.patches(side), from.channels * side * side});
  gather_patches(torch_threads(), from, side, out.data_ptr<float>());
  return out;
}

}  // namespace sparsight::cpu
