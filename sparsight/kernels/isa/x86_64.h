// The levels of x86-64 beyond the baseline: each table starts from that of the one before where it has nothing better.
#pragma once

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

const Kernels& kernels_avx2();
const Kernels& kernels_avx512();
const Kernels& kernels_avx512_bf16();
const Kernels& kernels_amx();

const TrainingKernels& training_kernels_avx2();
const TrainingKernels& training_kernels_avx512();
const TrainingKernels& training_kernels_avx512_bf16();

}  // namespace sparsight::cpu
