// Softmax of a row, and its cross-entropy (ops/softmax_rows.h, ops/softmax_cross_entropy.h). Over a vector type V.
// Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/attention/attention_inl.h"

namespace sparsight::cpu {
namespace {

// Numbers of a block: sums are in fp32 within it, and in fp64 over the blocks of a row.
constexpr int64_t kBlockOfSum = 256;

// exp(x) for x <= 0, exactly 0 below -87.3, where exponential() stays at 1.2e-38: a class at -inf has probability 0.
template <class V>
inline typename V::T vanishing_exponential(typename V::T x) {
  return V::select_negative(V::add(x, V::set1(87.3f)), V::set1(0.0f), exponential<V>(x));
}

template <class Body>
inline void for_sum_blocks(int64_t count, const Body& body) {
  for (int64_t first = 0; first < count; first += kBlockOfSum) body(first, min(kBlockOfSum, count - first));
}

struct MaxAndSum {
  float max;
  double sum;  // of exp(x - max)
};

// In one pass: where a block has a new max, the sum so far is scaled to it. NaN reaches the sum, whatever the max is.
template <class V>
inline MaxAndSum max_and_sum(const float* x, int64_t count) {
  // Starts at the lowest finite number instead of -inf, because -inf - -inf is NaN in a block of classes at -inf.
  MaxAndSum row{-__FLT_MAX__, 0};
  const float outside = -__builtin_inff();
  for_sum_blocks(count, [&](int64_t first, int64_t size) {
    auto top = V::set1(row.max);
    for_vectors<V>(size, [&](int64_t c, int some) { top = V::max(top, load_filled<V>(x + first + c, some, outside)); });
    const float max = largest<V>(top);
    if (first > 0 && max != row.max) row.sum *= __builtin_exp(double{row.max} - double{max});
    row.max = max;
    const auto shift = V::set1(-max);
    LaneSums<V> sum;
    for_steps<V>(size, [&](int64_t c, int some, auto part) {
      const auto difference = V::add(load_filled<V>(x + first + c, some, outside), shift);
      sum.add(part, vanishing_exponential<V>(difference));
    });
    row.sum += double{sum.total()};
  });
  return row;
}

// A row as in ops/softmax_rows.h.
template <class V>
void softmax(const float* x, float* out, int64_t count) {
  const float outside = -__builtin_inff();
  auto top = V::set1(-__FLT_MAX__);  // as in max_and_sum()
  for_vectors<V>(count, [&](int64_t c, int some) { top = V::max(top, load_filled<V>(x + c, some, outside)); });
  const auto shift = V::set1(-largest<V>(top));
  double all = 0;
  for_sum_blocks(count, [&](int64_t first, int64_t size) {
    LaneSums<V> sum;
    for_steps<V>(size, [&](int64_t c, int some, auto part) {
      const auto difference = V::add(load_filled<V>(x + first + c, some, outside), shift);
      const auto power = vanishing_exponential<V>(difference);
      store_some<V>(out + first + c, power, some);
      sum.add(part, power);
    });
    all += double{sum.total()};
  });
  const auto scale = V::set1(static_cast<float>(1 / all));
  for_vectors<V>(
      count, [&](int64_t c, int some) { store_some<V>(out + c, V::mul(scale, load_some<V>(out + c, some)), some); });
}

struct TargetSums {
  double targets, products;  // of t, and of t (x - max)
};

// targets: null for ones, of which only the products are right.
template <class V>
inline TargetSums target_sums(const float* x, const float* targets, float max, int64_t count) {
  TargetSums row{0, 0};
  const auto shift = V::set1(-max);
  for_sum_blocks(count, [&](int64_t first, int64_t size) {
    LaneSums<V> total, product;
    for_steps<V>(size, [&](int64_t c, int some, auto part) {
      const auto difference = V::add(load_filled<V>(x + first + c, some, max), shift);  // 0 beyond the row
      const auto t = targets ? load_some<V>(targets + first + c, some) : V::set1(1.0f);
      total.add(part, t);
      product.add_product(part, t, difference);
    });
    row.targets += double{total.total()};
    row.products += double{product.total()};
  });
  return row;
}

// sum(t) log s - sum(t (x - m)), where m is the row's max and s the sum of exp(x - m). It stays exact where the logits
// are large, and log s + m does not.
template <class V>
float cross_entropy(const CrossEntropyRow& row, SoftmaxMoments* moments) {
  const MaxAndSum of_row = max_and_sum<V>(row.logits, row.classes);
  TargetSums target{1, 0};
  if (row.targets) {
    target = target_sums<V>(row.logits, row.targets, of_row.max, row.classes);
  } else {
    target.products = double{row.own} * (double{row.logits[row.label]} - double{of_row.max});
    if (row.shared != 0)  // else a class at -inf would make it NaN
      target.products = __builtin_fma(row.shared, target_sums<V>(row.logits, nullptr, of_row.max, row.classes).products,
                                      target.products);
  }
  if (moments) *moments = {of_row.max, static_cast<float>(target.targets / of_row.sum)};
  return static_cast<float>(__builtin_fma(target.targets, __builtin_log(of_row.sum), -target.products));
}

// upstream * (softmax sum(t) - t), in one pass.
template <class V>
void cross_entropy_backward(const CrossEntropyRow& row, const SoftmaxMoments& moments, float upstream, float* grad) {
  const auto shift = V::set1(-moments.max), scale = V::set1(moments.scale);
  const auto factor = V::set1(upstream), minus_one = V::set1(-1.0f), shared = V::set1(row.shared);
  for_vectors<V>(row.classes, [&](int64_t c, int some) {
    const auto power = vanishing_exponential<V>(V::add(load_some<V>(row.logits + c, some), shift));
    const auto t = row.targets ? load_some<V>(row.targets + c, some) : shared;
    store_some<V>(grad + c, V::mul(factor, V::fma(power, scale, V::mul(minus_one, t))), some);
  });
  if (!row.targets) grad[row.label] = __builtin_fmaf(-upstream, row.own, grad[row.label]);
}

}  // namespace
}  // namespace sparsight::cpu
