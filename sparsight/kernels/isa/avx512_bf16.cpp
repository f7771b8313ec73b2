// The avx512_bf16 level, chosen on CPUs with AVX512-BF16 but without AMX: products of packed bf16 weights, and those
// that ask for it (Gemm::bf16_products), multiply pairs of bf16. The amx level uses it too. Everything else is
// avx512's. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/isa/bf16_level_inl.h"
#include "sparsight/kernels/isa/vectors_avx512_bf16_inl.h"
#include "sparsight/kernels/isa/x86_64.h"

namespace sparsight::cpu {

const Kernels& kernels_avx512_bf16() {
  static const Kernels table = with_bf16_products<Bf16Vec, kernels_avx512>();
  return table;
}

const TrainingKernels& training_kernels_avx512_bf16() {
  static const TrainingKernels table = with_bf16_training<Bf16Vec, training_kernels_avx512>();
  return table;
}

}  // namespace sparsight::cpu
