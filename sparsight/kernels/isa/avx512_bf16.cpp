// The avx512_bf16 level, chosen on CPUs with AVX512-BF16 but without AMX: products of packed bf16 weights, and those
// that ask for it (Gemm::bf16_products), multiply pairs of bf16. The amx level uses it too. Everything else is
// avx512's. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/attention/attention_bf16_inl.h"
#include "sparsight/kernels/isa/vectors_avx512_bf16_inl.h"
#include "sparsight/kernels/isa/x86_64.h"

namespace sparsight::cpu {
namespace {

// Fewer rows read B only a few times, and fp32 is as fast.
constexpr int64_t kFewestRounded = 8;

void bf16_product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0) return;
  if (p.b_panels && p.b_type == WeightType::bf16)
    in_row_parts(p, [space](const Gemm& part) { gemm_panels<Bf16Vec, Bf16Pairs>(part, space); });
  else if (p.bf16_products && !p.b_panels && p.m >= kFewestRounded)
    gemm_bf16<Bf16Vec>(p, space);
  else
    return kernels_avx512().product(p, space);
  if (p.stream) Bf16Vec::fence();
}

void pack_any_panels(const PanelPacking& p) {
  p.type == WeightType::bf16 ? pack_bf16_panels<Bf16Vec>(p) : kernels_avx512().pack_panels(p);
}

void attention_forward_any(const AttentionForward& p) {
  p.bf16 ? attention_forward<Bf16Vec, Bf16Products<Bf16Vec>>(p) : kernels_avx512().attention_forward(p);
}
void attention_backward_any(const AttentionBackward& p) {
  p.bf16 ? attention_backward<Bf16Vec, Bf16Products<Bf16Vec>>(p) : kernels_avx512().attention_backward(p);
}

}  // namespace

const Kernels& kernels_avx512_bf16() {
  static const Kernels table = [] {
    Kernels kernels = kernels_avx512();
    kernels.product = bf16_product;
    kernels.pack_panels = pack_any_panels;
    kernels.attention_forward = attention_forward_any;
    kernels.attention_backward = attention_backward_any;
    kernels.multiplies_bf16 = true;
    kernels.panel_floats = max(kernels.panel_floats, bf16_floats<Bf16Vec>());
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
