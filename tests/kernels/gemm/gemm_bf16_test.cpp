// Products of bf16 at every instruction-set level: packed weights, and plain operands that are rounded in the product.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::gemm_bf16_test {
namespace {

// To nearest, ties to even, by the arithmetic of fp64.
float rounded(float value) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // [0.5, 1)
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Scratch = std::unique_ptr<float[], Free>;
Scratch scratch() {
  return Scratch(static_cast<float*>(
      std::aligned_alloc(64, static_cast<size_t>((cpu::kernels().panel_floats * 4 + 63) / 64 * 64))));
}

enum class Order { rows, transposed, packed };

// C [m,n] = A [m,k] B [k,n] with B in one of three orders.
struct Product {
  int64_t m, n, k;
  bool a_transposed;
  Order order;
  std::vector<float> a, b, bias;

  Product(int64_t rows, int64_t columns, int64_t depth, bool transposed, Order b_order)
      : m(rows), n(columns), k(depth), a_transposed(transposed), order(b_order) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    for (auto* values : {&a, &b, &bias}) {
      values->resize(static_cast<size_t>(values == &a ? m * k : values == &b ? k * n : n));
      for (float& value : *values) value = normal(engine);
    }
  }
  float& a_at(int64_t i, int64_t l) { return a[static_cast<size_t>(i * k + l)]; }
  float& b_at(int64_t l, int64_t j) { return b[static_cast<size_t>(l * n + j)]; }
  void round() {
    for (float& value : a) value = rounded(value);
    for (float& value : b) value = rounded(value);
  }

  std::vector<float> operands(bool transposed, const std::vector<float>& from, int64_t rows, int64_t columns) const {
    std::vector<float> to(from.size());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[static_cast<size_t>(transposed ? c * rows + r : r * columns + c)] =
            from[static_cast<size_t>(r * columns + c)];
    return to;
  }
  std::vector<float> in_blocks() const {
    const float nan = std::numeric_limits<float>::quiet_NaN();  // padding must not be read
    std::vector<float> blocks(static_cast<size_t>(cpu::count_blocks(k) * m * cpu::kBlockLd), nan);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l)
        blocks[static_cast<size_t>(l / cpu::kBlock * m * cpu::kBlockLd + i * cpu::kBlockLd + l % cpu::kBlock)] =
            a[static_cast<size_t>(i * k + l)];
    return blocks;
  }

  std::vector<float> multiply() const {
    const std::vector<float> left = a_transposed ? operands(true, a, m, k) : in_blocks();
    const std::vector<float> right = operands(order != Order::rows, b, k, n);
    const cpu::PackedLinear packed(right.data(), bias.data(), k, n, WeightType::bf16);
    cpu::Gemm p = packed.gemm(0, n);
    if (order != Order::packed) {
      p.b = right.data(), p.b_panels = false, p.bf16_products = true;
      p.b_transposed = order == Order::transposed, p.b_ld = p.b_transposed ? k : n;
    }
    p.m = m;
    p.a = left.data(), p.a_transposed = a_transposed, p.a_ld = m, p.a_block = m * cpu::kBlockLd;
    std::vector<float> c(static_cast<size_t>(m * n));
    p.c = c.data(), p.c_ld = n;
    cpu::kernels().product(p, scratch().get());
    return c;
  }

  // Root mean square error against sums in fp64, relative to the root mean square of the result.
  double error(const std::vector<float>& c) {
    double squares = 0, size = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias[static_cast<size_t>(j)];
        for (int64_t l = 0; l < k; ++l) sum += static_cast<double>(a_at(i, l)) * b_at(l, j);
        const double difference = c[static_cast<size_t>(i * n + j)] - sum;
        squares += difference * difference, size += sum * sum;
      }
    return std::sqrt(squares / size);
  }
};

template <class Body>
void for_products(const Body& body) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    SCOPED_TRACE(name);
    for (const int64_t m : {1, 7, 8, 9, 20, 33, 160})
      for (const int64_t n : {8, 16, 40, 100})
        for (const int64_t k : {1, 2, 31, 33, 197, 500})
          for (const bool a_transposed : {false, true})
            for (const Order order : {Order::rows, Order::transposed, Order::packed}) {
              if (a_transposed && order == Order::packed) continue;
              SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << (a_transposed ? ", A^T" : "")
                                                << ", order " << static_cast<int>(order));
              Product product(m, n, k, a_transposed, order);
              body(product);
            }
  }
  set_isa("");
}

bool multiplies_bf16() { return cpu::kernels().multiplies_bf16; }

}  // namespace

// Products of two numbers of 8 significant bits are exact in fp32, so only sums round: 0.2 sqrt(k) units of 2^-24.
TEST(GemmBf16, OfRoundedOperandsErrsAsSumsInFp32Do) {
  for_products([](Product& product) {
    product.round();
    EXPECT_LT(product.error(product.multiply()), std::ldexp(2 + 0.7 * std::sqrt(product.k), -24));
  });
}

// Where both operands are rounded in the product, rounding them before changes no bit. Small products stay in fp32.
TEST(GemmBf16, RoundsOperandsToNearest) {
  for_products([](Product& product) {
    if (!multiplies_bf16() || (product.m < 8 && product.order != Order::packed)) return;
    const std::vector<float> c = product.multiply();
    product.round();
    EXPECT_EQ(c, product.multiply());
  });
}

// Levels may multiply one row by another instruction than several. Row 1 and column 0 make sums of -0, which no padding
// may turn into +0.
TEST(GemmBf16, ARowOfPackedProductsHasTheSameBitsAloneAndAmongOthers) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    SCOPED_TRACE(name);
    for (const int64_t m : {2, 3, 4, 5, 6, 7, 13})
      for (const int64_t n : {8, 40, 100})
        for (const int64_t k : {1, 2, 3, 4, 31, 34, 386}) {
          SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k);
          Product all(m, n, k, false, Order::packed);
          for (int64_t l = 0; l < k; ++l) all.a_at(1, l) = 0, all.b_at(l, 0) = -1;
          all.bias[0] = -0.0F;
          const std::vector<float> c = all.multiply();
          Product one(1, n, k, false, Order::packed);
          one.b = all.b, one.bias = all.bias;
          for (int64_t i = 0; i < m; ++i) {
            one.a.assign(all.a.begin() + i * k, all.a.begin() + (i + 1) * k);
            const std::vector<float> row = one.multiply();
            ASSERT_EQ(std::memcmp(row.data(), c.data() + i * n, row.size() * sizeof(float)), 0) << "row " << i;
          }
        }
  }
  set_isa("");
}

// Levels without such products keep fp32: a plain product errs as sums in fp32 do, a packed one only by its weights.
TEST(GemmBf16, ElsewhereOnlyPackedWeightsAreRounded) {
  for_products([](Product& product) {
    if (multiplies_bf16()) return;
    const std::vector<float> c = product.multiply();
    if (product.order == Order::packed)
      for (float& value : product.b) value = rounded(value);
    EXPECT_LT(product.error(c), std::ldexp(2 + 0.7 * std::sqrt(product.k), -24));
  });
}

TEST(GemmBf16, WhatIsNotFiniteStaysInItsRow) {
  for (const std::string& name : isa_names()) {
    set_isa(name);
    SCOPED_TRACE(name);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const Order order : {Order::rows, Order::transposed, Order::packed}) {
        Product product(20, 70, 101, false, order);
        product.a_at(7, 100) = bad;
        const std::vector<float> c = product.multiply();
        for (int64_t i = 0; i < 20; ++i)
          for (int64_t j = 0; j < 70; ++j)
            EXPECT_EQ(std::isfinite(c[static_cast<size_t>(i * 70 + j)]), i != 7) << i << " " << j;
      }
  }
  set_isa("");
}

}  // namespace sparsight::gemm_bf16_test
