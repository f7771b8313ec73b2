// The softmax of rows.
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// x, out: [rows,columns].
void softmax_rows(Threads& threads, const float* x, float* out, int64_t rows, int64_t columns);

}  // namespace sparsight::cpu
