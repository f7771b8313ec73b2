// Layer norm of a row. Over a vector type V. Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/elementwise/elementwise_inl.h"

namespace sparsight::cpu {
namespace {

// The variance is summed in a second pass, from differences to the mean.
template <class V>
RowMoments layer_norm(const float* x, const float* weight, const float* bias, float epsilon, int64_t width, float* out,
                      int64_t out_block) {
  const int64_t whole = width / V::lanes * V::lanes;
  const auto count = static_cast<float>(width);
  auto sums = V::set1(0.0f);
  for (int64_t c = 0; c < whole; c += V::lanes) sums = V::add(sums, V::load(x + c));
  float sum = V::sum(sums);
  for (int64_t c = whole; c < width; ++c) sum += x[c];
  const float mean = sum / count;
  const auto shift = V::set1(-mean);
  auto squares = V::set1(0.0f);
  for (int64_t c = 0; c < whole; c += V::lanes) {
    const auto difference = V::add(V::load(x + c), shift);
    squares = V::fma(difference, difference, squares);
  }
  float square = V::sum(squares);
  for (int64_t c = whole; c < width; ++c) square += (x[c] - mean) * (x[c] - mean);
  const float scale = 1 / __builtin_sqrtf(square / count + epsilon);
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
  auto sums = V::set1(0.0f), products = V::set1(0.0f);
  for_vectors<V>(row.width, [&](int64_t c, int some) {
    const auto h = V::mul(load_some<V>(row.grad + c, some), load_some<V>(row.weight + c, some));
    const auto normal = V::mul(V::add(load_some<V>(row.x + c, some), shift), scale);
    sums = V::add(sums, h);
    products = V::fma(h, normal, products);  // beyond the row h is 0
  });
  const auto count = static_cast<float>(row.width);
  const auto minus_mean = V::set1(-V::sum(sums) / count), minus_slope = V::set1(-V::sum(products) / count);
  for_vectors<V>(row.width, [&](int64_t c, int some) {
    const auto g = load_some<V>(row.grad + c, some), h = V::mul(g, load_some<V>(row.weight + c, some));
    const auto normal = V::mul(V::add(load_some<V>(row.x + c, some), shift), scale);
    const auto below = V::mul(scale, V::fma(normal, minus_slope, V::add(h, minus_mean)));
    store_some<V>(x_grad + c, row.residual ? V::add(below, load_some<V>(row.residual + c, some)) : below, some);
    if (!weight_grad) return;
    store_some<V>(weight_grad + c, V::fma(g, normal, load_some<V>(weight_grad + c, some)), some);
    store_some<V>(bias_grad + c, V::add(g, load_some<V>(bias_grad + c, some)), some);
  });
}

}  // namespace
}  // namespace sparsight::cpu
