// The levels of 64-bit Arm beyond the baseline: each table starts from that of the one before where it has nothing
// better.
#pragma once

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

const Kernels& kernels_neon();
const Kernels& kernels_neon_dotprod();
const Kernels& kernels_neon_bf16();
const Kernels& kernels_neon_i8mm();

const TrainingKernels& training_kernels_neon();
const TrainingKernels& training_kernels_neon_bf16();

}  // namespace sparsight::cpu
