// The avx512_bf16 level, chosen on CPUs with AVX512-BF16 but without AMX: products of packed bf16 weights, and those
// that ask for it (Gemm::bf16_products), multiply pairs of bf16. The amx level uses it too. Everything else is
// avx512's. Compiled with its own flags: see ops/sources.cmake.
#include "sparsight/ops/cpu/kernels_attention_bf16_inl.h"
#include "sparsight/ops/cpu/vectors_avx512_inl.h"

namespace sparsight::cpu {
namespace {

struct Bf16Vec : Vec {
  // Inline assembly for the same reason as in add_pairs() of integers.
  static T add_bf16_pairs(T sum, Pairs a, Pairs b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static Pairs load_bf16_pairs(const uint16_t* p) { return _mm512_loadu_si512(p); }
  static void store_pairs(int16_t* p, Pairs x) { _mm512_storeu_si512(p, x); }
  // Rounded to bf16: low in the first 16 numbers, high in the last.
  static Pairs joined(T low, T high) { return reinterpret_cast<Pairs>(_mm512_cvtne2ps_pbh(high, low)); }
  // Pair i is even[i], odd[i].
  static Pairs interleaved(T even, T odd) {
    alignas(64) static constexpr int16_t kOrder[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), joined(even, odd));
  }
};

// With fewer rows B is read only a few times, and fp32 is as fast.
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
    kernels.panel_floats = max(kernels.panel_floats, bf16_floats<Bf16Vec>());
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
