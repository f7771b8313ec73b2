// The kernels of every level, as templates over a vector type V (Vec in the level's source file, in an unnamed
// namespace so that levels share no instantiation). Included by kernels_<level>.cpp only.
#pragma once

#include <cstring>

#include "sparsight/kernels/attention/attention_inl.h"
#include "sparsight/kernels/conv/conv_inl.h"
#include "sparsight/kernels/elementwise/adam_inl.h"
#include "sparsight/kernels/elementwise/cross_entropy_inl.h"
#include "sparsight/kernels/elementwise/dropout_inl.h"
#include "sparsight/kernels/elementwise/elementwise_inl.h"
#include "sparsight/kernels/elementwise/norm_inl.h"
#include "sparsight/kernels/gemm/gemm_tn_inl.h"
#include "sparsight/kernels/gemm/panels_inl.h"
#include "sparsight/kernels/gemm/small_m_inl.h"
#include "sparsight/kernels/gemm/tiled_inl.h"

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
  return {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KERNEL(entry, implementation, result, parameters) .entry = implementation<V>,
#include "sparsight/kernels/kernels.inc"
#undef KERNEL
      .panel_floats = panel_floats<V>(),
      .task_rows = 144,
      .fewest_rows = 24,
      .vector_bytes = sizeof(typename V::T),
      .multiplies_bf16 = false,
      .has_tiles = false};
}

template <class V>
constexpr TrainingKernels make_training_kernels() {
  return {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define KERNEL(entry, implementation, result, parameters) .entry = implementation<V>,
#include "sparsight/kernels/training_kernels.inc"
#undef KERNEL
  };
}

}  // namespace
}  // namespace sparsight::cpu
