// The reference version of ops/attention.h, on any device and in any type: two batched products and a softmax, which
// is in fp32 at least.
#pragma once

#include "sparsight/ops/attention.h"

namespace sparsight::ref {

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries);
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward);

}  // namespace sparsight::ref
