// ops/attention.h for fp32 on a CPU. Each head of each image is a task of its own, in the forward pass also each part
// of its queries if there are few: results have the same bits for any number of threads.
#pragma once

#include "sparsight/ops/attention.h"

namespace sparsight::cpu {

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries);
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward);

}  // namespace sparsight::cpu
