// Layer norm of a row. Over a vector type V. Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/elementwise/elementwise_inl.h"

namespace sparsight::cpu {
namespace {

// The variance is summed in a second pass, from differences to the mean.
template <class V>
RowMoments layer_norm(const float* x, const float* weight, const float* bias, float epsilon, int64_t width, float* out,
                      int64_t out_block) {
  const auto count = static_cast<float>(width);
  LaneSums<V> sum, square;
  for_steps<V>(width, [&](int64_t c, int some, auto part) { sum.add(part, load_some<V>(x + c, some)); });
  const float mean = sum.total() / count;
  const auto shift = V::set1(-mean);
  for_steps<V>(width, [&](int64_t c, int some, auto part) {
    const auto difference = V::add(load_filled<V>(x + c, some, mean), shift);  // 0 beyond the row
    square.add_product(part, difference, difference);
  });
  const float scale = 1 / __builtin_sqrtf(square.total() / count + epsilon);
  const auto factor = V::set1(scale);
  for (int64_t block = 0; block < width; block += kBlock)
    for_vectors<V>(min(kBlock, width - block), [&](int64_t c, int some) {
      const auto normal = V::mul(V::add(load_some<V>(x + block + c, some), shift), factor);
      const auto shifted = V::fma(normal, load_some<V>(weight + block + c, some), load_some<V>(bias + block + c, some));
      store_some<V>(out + block / kBlock * out_block + c, shifted, some);
    });
  return {mean, scale};
}

// dx = scale (h - mean(h) - n mean(h n)), where n is the normalised row and h = grad * weight. One pass for the two
// means, one for the results.
template <class V>
void layer_norm_backward(const LayerNormRow& row, float* x_grad, float* weight_grad, float* bias_grad) {
  const auto shift = V::set1(-row.moments.mean), scale = V::set1(row.moments.scale);
  LaneSums<V> sums, products;
  for_steps<V>(row.width, [&](int64_t c, int some, auto part) {
    const auto h = V::mul(load_some<V>(row.grad + c, some), load_some<V>(row.weight + c, some));
    const auto normal = V::mul(V::add(load_some<V>(row.x + c, some), shift), scale);
    sums.add(part, h);
    products.add_product(part, h, normal);  // beyond the row h is 0
  });
  const auto count = static_cast<float>(row.width);
  const auto minus_mean = V::set1(-sums.total() / count), minus_slope = V::set1(-products.total() / count);
  for_vectors<V>(row.width, [&](int64_t c, int some) {
    const auto g = load_some<V>(row.grad + c, some);
    const auto h_less_mean = V::fma(g, load_some<V>(row.weight + c, some), minus_mean);
    const auto normal = V::mul(V::add(load_some<V>(row.x + c, some), shift), scale);
    const auto below = V::mul(scale, V::fma(normal, minus_slope, h_less_mean));
    store_some<V>(x_grad + c, row.residual ? V::add(below, load_some<V>(row.residual + c, some)) : below, some);
    if (!weight_grad) return;
    store_some<V>(weight_grad + c, V::fma(g, normal, load_some<V>(weight_grad + c, some)), some);
    store_some<V>(bias_grad + c, V::add(g, load_some<V>(bias_grad + c, some)), some);
  });
}

}  // namespace
}  // namespace sparsight::cpu
