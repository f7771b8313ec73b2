// Groups assignments by expert.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

struct ExpertGroups {
  at::Tensor order;    // [A_kept] int64: kept assignments by expert, in their original order within an expert
  at::Tensor offsets;  // [E+1] int64: expert e owns order[offsets[e] .. offsets[e+1])
};

// expert: [A] int64, 0..E-1. kept: [A] bool.
ExpertGroups sort_by_expert(const at::Tensor& expert, const at::Tensor& kept, int64_t experts);

// expert: [A] int64. Returns [E] int64: assignments of each expert.
at::Tensor count_by_expert(const at::Tensor& expert, int64_t experts);

}  // namespace sparsight
