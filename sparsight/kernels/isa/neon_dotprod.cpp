// The neon_dotprod level, chosen on Arm CPUs with FEAT_DotProd: int8 weights are multiplied four along the depth at a
// time. Everything else is neon's. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/panels_inl.h"
#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/vectors_neon_dotprod_inl.h"

namespace sparsight::cpu {
namespace {

void product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0 || !p.b_panels || p.b_type != WeightType::int8) return kernels_neon().product(p, space);
  in_row_parts(p, [space](const Gemm& part) { gemm_panels<QuadVec, int8_t>(part, space); });
}

}  // namespace

const Kernels& kernels_neon_dotprod() {
  static const Kernels table = [] {
    Kernels kernels = kernels_neon();
    kernels.product = product;
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
