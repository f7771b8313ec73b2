// The level of WebAssembly beyond the baseline.
#pragma once

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

const Kernels& kernels_simd128();

const TrainingKernels& training_kernels_simd128();

}  // namespace sparsight::cpu
