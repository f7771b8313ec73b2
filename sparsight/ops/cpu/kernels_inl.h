// The kernels of every level, as templates over a vector type V (Vec in the level's source file, in an unnamed
// namespace so that levels share no instantiation). Included by kernels_<level>.cpp only.
#pragma once

#include <cstring>

#include "sparsight/ops/cpu/kernels_adam_inl.h"
#include "sparsight/ops/cpu/kernels_attention_inl.h"
#include "sparsight/ops/cpu/kernels_conv_inl.h"
#include "sparsight/ops/cpu/kernels_cross_entropy_inl.h"
#include "sparsight/ops/cpu/kernels_dropout_inl.h"
#include "sparsight/ops/cpu/kernels_elementwise_inl.h"
#include "sparsight/ops/cpu/kernels_gemm_tn_inl.h"
#include "sparsight/ops/cpu/kernels_norm_inl.h"
#include "sparsight/ops/cpu/kernels_panels_inl.h"
#include "sparsight/ops/cpu/kernels_small_m_inl.h"
#include "sparsight/ops/cpu/kernels_tiled_inl.h"

namespace sparsight::cpu {
namespace {

template <class V>
void gemm_any(const Gemm& p, float* panel) {
  if (p.m == 0 || p.n == 0) return;
  if (p.b_panels)
    gemm_panels_any<V>(p, panel);
  else if (p.a_transposed)
    gemm_tn<V>(p, panel);
  else
    multiply<V>(p, panel);
  if (p.stream) V::fence();
}

template <class V>
constexpr Kernels make_kernels() {
  return {gemm_any<V>,
          panel_floats<V>(),
          144,
          activate_any<V>,
          activate_backward_any<V>,
          multiply_elements<V>,
          scaled_sum<V>,
          dot<V>,
          add_scaled<V>,
          layer_norm<V>,
          layer_norm_backward<V>,
          softmax<V>,
          cross_entropy<V>,
          cross_entropy_backward<V>,
          attention_forward<V>,
          attention_backward<V>,
          adam_step_any<V>,
          convolve<V>,
          scale_shift<V>,
          pack_panels<V>,
          random_bits<V>,
          drop<V>};
}

}  // namespace
}  // namespace sparsight::cpu
