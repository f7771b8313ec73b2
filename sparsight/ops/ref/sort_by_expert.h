// The reference version of ops/sort_by_expert.h, on any device.
#pragma once

#include "sparsight/ops/sort_by_expert.h"

namespace sparsight::ref {

ExpertGroups sort_by_expert(const at::Tensor& expert, const at::Tensor& kept, int64_t experts);
at::Tensor count_by_expert(const at::Tensor& expert, int64_t experts);

}  // namespace sparsight::ref
