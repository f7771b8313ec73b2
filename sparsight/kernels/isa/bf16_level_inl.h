// The kernels of a level that multiplies pairs of bf16, over a vector type V: products of packed bf16 weights, and
// those that ask for it (Gemm::bf16_products). Everything else is that of the level below, whose table kBelow()
// returns. Included by the source files of such levels.
#pragma once

#include "sparsight/kernels/attention/attention_bf16_inl.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {
namespace {

template <class V, const Kernels& (*kBelow)()>
struct Bf16Level {
  // Fewer rows read B only a few times, and fp32 is as fast.
  static constexpr int64_t kFewestRounded = 8;

  static void product(const Gemm& p, float* space) {
    if (p.m == 0 || p.n == 0) return;
    if (p.b_panels && p.b_type == WeightType::bf16)
      in_row_parts(p, [space](const Gemm& part) { gemm_panels<V, Bf16Pairs>(part, space); });
    else if (p.bf16_products && !p.b_panels && p.m >= kFewestRounded)
      gemm_bf16<V>(p, space);
    else
      return kBelow().product(p, space);
    if (p.stream) V::fence();
  }

  static void pack_panels(const PanelPacking& p) {
    p.type == WeightType::bf16 ? pack_bf16_panels<V>(p) : kBelow().pack_panels(p);
  }
  static void attention_forward(const AttentionForward& p) {
    p.bf16 ? cpu::attention_forward<V, Bf16Products<V>>(p) : kBelow().attention_forward(p);
  }
};

template <class V, const Kernels& (*kBelow)()>
Kernels with_bf16_products() {
  using Level = Bf16Level<V, kBelow>;
  Kernels kernels = kBelow();
  kernels.product = Level::product;
  kernels.pack_panels = Level::pack_panels;
  kernels.attention_forward = Level::attention_forward;
  kernels.multiplies_bf16 = true;
  kernels.panel_floats = max(kernels.panel_floats, bf16_floats<V>());
  return kernels;
}

template <class V, const TrainingKernels& (*kBelow)()>
TrainingKernels with_bf16_training() {
  TrainingKernels kernels = kBelow();
  kernels.attention_backward = [](const AttentionBackward& p) {
    p.bf16 ? attention_backward<V, Bf16Products<V>>(p) : kBelow().attention_backward(p);
  };
  return kernels;
}

}  // namespace
}  // namespace sparsight::cpu
