#include "sparsight/ops/cpu/attention.h"

#include <ATen/ops/empty.h>

#include "sparsight/kernels/attention/attention.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {
namespace {

AttentionShape attention_shape(const at::Tensor& qkv, int64_t heads, int64_t queries) {
  return {.images = qkv.size(0),
          .tokens = qkv.size(1),
          .heads = heads,
          .width = qkv.size(2) / 3,
          .queries = queries,
          .bf16 = multiplies_bf16()};
}

}  // namespace

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries) {
  const AttentionShape shape = attention_shape(qkv, heads, queries);
  AttentionOutput output;
  output.out = empty_from_arena({shape.images, queries, shape.width});
  if (needs_log_sum) output.log_sum = at::empty({shape.images, heads, queries}, at::kFloat);
  if (output.out.numel() > 0)
    attention_forward(torch_threads(), shape, qkv.const_data_ptr<float>(), output.out.data_ptr<float>(),
                      needs_log_sum ? output.log_sum.data_ptr<float>() : nullptr);
  return output;
}

at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward) {
  at::Tensor qkv_grad = empty_from_arena(qkv.sizes());
  if (qkv_grad.numel() > 0)
    attention_backward(torch_threads(), attention_shape(qkv, forward.log_sum.size(1), grad.size(1)),
                       qkv.const_data_ptr<float>(),
                       {.out = forward.out.const_data_ptr<float>(),
                        .log_sum = forward.log_sum.const_data_ptr<float>(),
                        .out_grad = grad.const_data_ptr<float>()},
                       qkv_grad.data_ptr<float>());
  return qkv_grad;
}

}  // namespace sparsight::cpu
