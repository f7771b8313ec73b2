// The neon_bf16 level, chosen on Arm CPUs with FEAT_BF16: products of packed bf16 weights, and those that ask for it
// (Gemm::bf16_products), multiply bf16: two rows with two columns, four along the depth (gemm/neon_matrix_inl.h), or
// one row, two along the depth. Everything else is neon_dotprod's. Compiled with its own flags: see
// kernels/sources.cmake.
#include "sparsight/kernels/isa/vectors_neon_bf16_inl.h"

#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/bf16_level_inl.h"

namespace sparsight::cpu {

const Kernels& kernels_neon_bf16() {
  static const Kernels table = with_bf16_products<Bf16Vec, kernels_neon_dotprod>();
  return table;
}

const TrainingKernels& training_kernels_neon_bf16() {
  static const TrainingKernels table = with_bf16_training<Bf16Vec, training_kernels_neon>();
  return table;
}

}  // namespace sparsight::cpu
