// The optimiser's step (elementwise/adam_step.h), over a vector type V of an instruction-set level: see
// isa/level_inl.h.
#pragma once

#include "sparsight/kernels/elementwise/elementwise_inl.h"

namespace sparsight::cpu {
namespace {

// Computes what torch's lerp does, so that a share of 1 copies.
template <class V>
inline typename V::T towards(typename V::T average, typename V::T value, float share) {
  const auto difference = V::add(value, V::mul(V::set1(-1.0f), average));
  return share < 0.5f ? V::fma(V::set1(share), difference, average) : V::fma(V::set1(share - 1), difference, value);
}

template <class V>
void adam_step_any(const AdamFactors& f, const AdamArrays& a) {
  for_vectors<V>(a.count, [&](int64_t c, int some) {
    const auto before = load_some<V>(a.value + c, some);
    const auto gradient =
        V::fma(V::set1(f.coupled_decay), before, V::mul(V::set1(f.gradient), load_some<V>(a.gradient + c, some)));
    const auto mean =
        V::fma(V::set1(f.beta1), load_some<V>(a.exp_avg + c, some), V::mul(V::set1(f.one_minus_beta1), gradient));
    const auto square = V::fma(V::set1(f.beta2), load_some<V>(a.exp_avg_sq + c, some),
                               V::mul(V::set1(f.one_minus_beta2), V::mul(gradient, gradient)));
    const auto denominator = V::fma(V::sqrt(square), V::set1(f.root_factor), V::set1(f.eps));
    const auto value = V::fma(V::set1(f.minus_step_size), V::div(mean, denominator), V::mul(V::set1(f.kept), before));
    store_some<V>(a.exp_avg + c, mean, some);
    store_some<V>(a.exp_avg_sq + c, square, some);
    store_some<V>(a.value + c, value, some);
    if (a.average)
      store_some<V>(a.average + c, towards<V>(load_some<V>(a.average + c, some), value, f.average_share), some);
  });
}

}  // namespace
}  // namespace sparsight::cpu
