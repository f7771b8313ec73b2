// Linear layers of experts (ops/grouped_linear.h) in fp32. The work is split by the numbers of rows alone: results have
// the same bits for any number of threads, which torch's own matrix product does not guarantee.
#pragma once

#include "sparsight/kernels/experts/residual_rows.h"
#include "sparsight/kernels/gemm/row_products.h"

namespace sparsight::cpu {

// out [R,columns] = rows [R,depth] times the matrix of each row's expert, + its bias, and then `residual`.
void grouped_linear(Threads& threads, const RowProducts& products, const float* rows, const ResidualRows& residual,
                    float* out);

struct GroupedLinearSums {
  int64_t experts = 0, inputs = 0, outputs = 0;  // E, I, O
  const int64_t* offset = nullptr;               // [E+1]
  const float *rows = nullptr, *grad = nullptr;  // [R,I], [R,O]
  bool bf16 = false;                             // products of bf16
  float* weight = nullptr;                       // [E,I,O], or null
  float* bias = nullptr;                         // [E,O], or null
};
// The gradients of weight and bias, which are overwritten.
void grouped_linear_sums(Threads& threads, const GroupedLinearSums& p);

}  // namespace sparsight::cpu
