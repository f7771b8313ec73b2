// Activations and sums of rows, over a vector type V of an instruction-set level: see isa/level_inl.h.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "sparsight/kernels/isa/arithmetic.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {
namespace {

inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

// ---- elementwise functions ------------------------------------------------------------------------------------------

// erf(x) = x P(x²)/Q(x²) for |x| <= 3.92, beyond which it rounds to 1; coefficients fitted to the minimum relative
// error (1.9e-8 in exact arithmetic, 3.3e-7 in fp32). Returns 1 + erf(x / sqrt 2), exactly 0 for x < -5.54.
template <class V>
inline typename V::T one_plus_erf_of_half_root(typename V::T x) {
  constexpr float kRoot = 0.70710678118654752f;
  const auto z = V::mul(V::set1(kRoot), V::max(V::set1(-5.5437172f), V::min(V::set1(5.5437172f), x)));
  const auto t = V::mul(z, z);
  auto p = V::set1(2.050079607e-06f), q = V::set1(3.809170623e-05f);
  p = V::fma(p, t, V::set1(2.848840812e-04f));
  q = V::fma(q, t, V::set1(1.162548897e-03f));
  p = V::fma(p, t, V::set1(3.765671197e-03f));
  q = V::fma(q, t, V::set1(1.496932547e-02f));
  p = V::fma(p, t, V::set1(5.274889194e-02f));
  q = V::fma(q, t, V::set1(1.141096298e-01f));
  p = V::fma(p, t, V::set1(1.904077109e-01f));
  q = V::fma(q, t, V::set1(5.020771809e-01f));
  p = V::fma(p, t, V::set1(1.128379146e+00f));
  q = V::fma(q, t, V::set1(1.0f));
  const auto value = V::fma(V::mul(z, p), V::reciprocal(q), V::set1(1.0f));
  return V::select_negative(V::add(x, V::set1(5.5437172f)), V::set1(0.0f), value);
}

// exp(x) for x <= 0 and a little above, within 2 ulp; 0 below -87.
template <class V>
inline typename V::T exponential(typename V::T x) {
  x = V::max(V::set1(-87.3f), V::min(V::set1(88.0f), x));
  const auto n = V::round(V::mul(x, V::set1(1.44269504088896341f)));
  auto r = V::fma(n, V::set1(-0.693359375f), x);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  auto p = V::set1(1.9841270e-4f);
  p = V::fma(p, r, V::set1(1.3888889e-3f));
  p = V::fma(p, r, V::set1(8.3333333e-3f));
  p = V::fma(p, r, V::set1(4.1666667e-2f));
  p = V::fma(p, r, V::set1(1.6666667e-1f));
  p = V::fma(p, r, V::set1(0.5f));
  p = V::fma(p, r, V::set1(1.0f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::mul(p, V::power_of_two(n));
}

// Each returns act(x), and with kSlope also sets act'(x).
template <class V>
struct Gelu {
  using T = typename V::T;
  template <bool kSlope>
  static T apply(T x, T* slope) {
    const T half_cdf = one_plus_erf_of_half_root<V>(x);
    const T half = V::mul(V::set1(0.5f), x);
    if constexpr (kSlope) {
      const T density = exponential<V>(V::mul(V::mul(half, x), V::set1(-1.0f)));
      *slope = V::fma(V::mul(x, V::set1(0.3989422804014327f)), density, V::mul(V::set1(0.5f), half_cdf));
    }
    return V::mul(half, half_cdf);
  }
};
template <class V>
struct Relu {
  using T = typename V::T;
  template <bool kSlope>
  static T apply(T x, T* slope) {
    if constexpr (kSlope) *slope = V::step(x);
    return V::max(V::set1(0.0f), x);
  }
};
// 1 / (1 + exp(-x)) through exp(-|x|), which cannot overflow.
template <class V>
inline typename V::T logistic(typename V::T x) {
  const auto small = exponential<V>(V::min(x, V::mul(V::set1(-1.0f), x)));
  const auto inverse = V::reciprocal(V::add(small, V::set1(1.0f)));
  return V::select_negative(x, V::mul(small, inverse), inverse);
}

template <class V>
struct Silu {
  using T = typename V::T;
  template <bool kSlope>
  static T apply(T x, T* slope) {
    const T sigmoid = logistic<V>(x);
    const T y = V::mul(x, sigmoid);
    if constexpr (kSlope) *slope = V::fma(y, V::fma(sigmoid, V::set1(-1.0f), V::set1(1.0f)), sigmoid);
    return y;
  }
};
// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x logistic(2 u).
template <class V>
struct GeluTanh {
  using T = typename V::T;
  template <bool kSlope>
  static T apply(T x, T* slope) {
    const T a = V::set1(1.5957691216057308f), b = V::set1(0.0713548162726009f);  // 2 sqrt(2 / pi) and 0.044715 of it
    const T square = V::mul(x, x);
    const T share = logistic<V>(V::mul(x, V::fma(b, square, a)));
    const T y = V::mul(x, share);
    if constexpr (kSlope) {
      const T inner = V::fma(V::mul(V::set1(3.0f), b), square, a);
      *slope = V::fma(V::mul(y, V::fma(share, V::set1(-1.0f), V::set1(1.0f))), inner, share);
    }
    return y;
  }
};

// Calls body(first, count) for whole vectors and then for the remainder.
template <class V, class Body>
inline void for_vectors(int64_t count, const Body& body) {
  int64_t c = 0;
  for (; c + V::lanes <= count; c += V::lanes) body(c, V::lanes);
  if (c < count) body(c, static_cast<int>(count - c));
}

// Calls body(first, count, part) for vectors in steps of kSumLanes columns; `part` is a compile-time number, the
// vector's place in its step.
constexpr int64_t kSumLanes = 16;
template <class V, class Body, int... kPart>
[[gnu::always_inline]] inline void for_steps(int64_t count, const Body& body, std::integer_sequence<int, kPart...>) {
  int64_t c = 0;
  for (; c + kSumLanes <= count; c += kSumLanes)
    (body(c + kPart * V::lanes, V::lanes, std::integral_constant<int, kPart>{}), ...);
  const auto rest = [&](auto part) {
    if (c < count) body(c, static_cast<int>(min(V::lanes, count - c)), part);
    c += V::lanes;
  };
  if (c < count) (rest(std::integral_constant<int, kPart>{}), ...);
}
template <class V, class Body>
[[gnu::always_inline]] inline void for_steps(int64_t count, const Body& body) {
  for_steps<V>(count, body, std::make_integer_sequence<int, kSumLanes / V::lanes>{});
}

// A sum over the vectors of for_steps(), in the same order at every level: that of kSumLanes lanes.
template <class V>
class LaneSums {
 public:
  using T = typename V::T;
  LaneSums() {
    for (int i = 0; i < kParts; ++i) part(i) = V::set1(0.0f);
  }
  template <class Part>
  [[gnu::always_inline]] void add(Part, T x) {
    part(Part::value) = V::add(part(Part::value), x);
  }
  template <class Part>
  [[gnu::always_inline]] void add_product(Part, T a, T b) {
    part(Part::value) = V::fma(a, b, part(Part::value));
  }
  float total() {
    if constexpr (kParts == 4) return V::sum(V::add(V::add(part(0), part(2)), V::add(part(1), part(3))));
    if constexpr (kParts == 2) return V::sum(V::add(part(0), part(1)));
    return V::sum(part(0));
  }

 private:
  static constexpr int kParts = kSumLanes / V::lanes;
  [[gnu::always_inline]] T& part(int i) {
    if constexpr (kParts == 1)
      return parts_;
    else
      return parts_[i];
  }

  // One vector is no array: g++ 12 loses what is added to an array of one struct of registers.
  std::conditional_t<kParts == 1, T, T[kParts]> parts_;
};

template <class V>
inline typename V::T load_some(const float* p, int count) {
  return count == V::lanes ? V::load(p) : V::load_part(p, count);
}
// load_some() with `fill` beyond the row, where a zero could be the row's max.
template <class V>
inline typename V::T load_filled(const float* p, int count, float fill) {
  if (count == V::lanes) return V::load(p);
  constexpr float kLane[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static_assert(V::lanes <= 16);
  const auto outside = V::add(V::load(kLane), V::set1(-static_cast<float>(count)));  // from 0 on
  return V::select_negative(outside, V::load_part(p, count), V::set1(fill));
}

template <class V>
inline void store_some(float* p, typename V::T x, int count) {
  if (count == V::lanes)
    V::store(p, x);
  else
    V::store_part(p, x, count);
}

template <class V, class F>
void activate_as(const float* x, float* out, float* slope, int64_t count) {
  for_vectors<V>(count, [&](int64_t c, int some) {
    typename V::T s;
    const auto in = load_some<V>(x + c, some);
    if (slope) {
      store_some<V>(out + c, F::template apply<true>(in, &s), some);
      store_some<V>(slope + c, s, some);
    } else {
      store_some<V>(out + c, F::template apply<false>(in, &s), some);
    }
  });
}

// Vectors whose quotients are those of IEEE 754 (isa/arithmetic.h).
template <class V>
struct Exact : V {
  static constexpr bool approximates = false;
  static typename V::T reciprocal(typename V::T x) { return V::div(V::set1(1.0f), x); }
};

// Calls body() with the functor of the activation.
template <class V, class Body>
auto with_activation(Activation activation, const Body& body) {
  if constexpr (V::approximates)
    if (consistent_arithmetic()) return with_activation<Exact<V>>(activation, body);
  switch (activation) {
    case Activation::relu:
      return body(Relu<V>{});
    case Activation::silu:
      return body(Silu<V>{});
    case Activation::gelu_tanh:
      return body(GeluTanh<V>{});
    default:
      return body(Gelu<V>{});
  }
}

template <class V>
void activate_any(Activation activation, const float* x, float* out, float* slope, int64_t count) {
  with_activation<V>(activation, [&](auto f) { activate_as<V, decltype(f)>(x, out, slope, count); });
}

template <class V, class F>
float activate_backward_as(const float* pre_activation, float gate, float* grad, float* active, int64_t count) {
  LaneSums<V> sum;
  const auto factor = V::set1(gate);
  for_steps<V>(count, [&](int64_t c, int some, auto part) {
    typename V::T slope;
    const auto value = F::template apply<true>(load_some<V>(pre_activation + c, some), &slope);
    const auto g = load_some<V>(grad + c, some);
    sum.add_product(part, value, g);
    store_some<V>(grad + c, V::mul(V::mul(factor, g), slope), some);
    store_some<V>(active + c, V::mul(factor, value), some);
  });
  return sum.total();
}

template <class V>
float activate_backward_any(Activation activation, const float* pre_activation, float gate, float* grad, float* active,
                            int64_t count) {
  return with_activation<V>(activation, [&](auto f) {
    return activate_backward_as<V, decltype(f)>(pre_activation, gate, grad, active, count);
  });
}

template <class V>
void multiply_elements(const float* x, float* y, int64_t count) {
  for_vectors<V>(count, [&](int64_t c, int some) {
    store_some<V>(y + c, V::mul(load_some<V>(x + c, some), load_some<V>(y + c, some)), some);
  });
}

template <class V>
void scaled_sum(const float* const* rows, const float* gates, int64_t count, float* out, int64_t width) {
  for_vectors<V>(width, [&](int64_t c, int some) {
    auto sum = V::set1(0.0f);
    for (int64_t i = 0; i < count; ++i) sum = V::fma(V::set1(gates[i]), load_some<V>(rows[i] + c, some), sum);
    store_some<V>(out + c, sum, some);
  });
}

template <class V>
float dot(const float* a, const float* b, int64_t count) {
  LaneSums<V> sum;
  for_steps<V>(count, [&](int64_t c, int some, auto part) {
    sum.add_product(part, load_some<V>(a + c, some), load_some<V>(b + c, some));
  });
  return sum.total();
}

template <class V>
void add_scaled(float factor, const float* x, float* y, int64_t count) {
  const auto f = V::set1(factor);
  for_vectors<V>(count, [&](int64_t c, int some) {
    store_some<V>(y + c, V::fma(f, load_some<V>(x + c, some), load_some<V>(y + c, some)), some);
  });
}

}  // namespace
}  // namespace sparsight::cpu
