// Products with packed int8 weights at every instruction-set level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/workspace.h"
#include "tests/kernels/every_level.h"

namespace sparsight::gemm_int8_test {
namespace {

// C [m,n] = A [m,k] B [k,n] + bias. Weights are whole numbers of eighths with a largest of 127 / 8 in each column, so
// that packing stores them exactly.
struct Int8Product {
  int64_t m, n, k;
  std::vector<float> a, weight, bias;

  Int8Product(int64_t rows, int64_t columns, int64_t depth) : m(rows), n(columns), k(depth) {
    std::mt19937 engine(5);
    for (int64_t i = 0; i < m * k; ++i) a.push_back(uniform(engine) * static_cast<float>(i / k % 3 + 1));
    for (int64_t i = 0; i < n * k; ++i)
      weight.push_back(i % k == 0 ? -127 / 8.0f : static_cast<float>(std::lround(uniform(engine) * 127)) / 8);
    for (int64_t i = 0; i < n; ++i) bias.push_back(uniform(engine));
  }
  static float uniform(std::mt19937& engine) {
    return static_cast<float>(static_cast<double>(engine()) / 2147483648.0 - 1);
  }
  float a_at(int64_t i, int64_t l) const { return a[static_cast<size_t>(i * k + l)]; }

  std::vector<float> multiply() const {
    const float nan = std::numeric_limits<float>::quiet_NaN();  // padding must not be read
    std::vector<float> blocks(static_cast<size_t>(cpu::count_blocks(k) * m * cpu::kBlockLd), nan);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l)
        blocks[static_cast<size_t>(l / cpu::kBlock * m * cpu::kBlockLd + i * cpu::kBlockLd + l % cpu::kBlock)] =
            a_at(i, l);
    const cpu::PackedLinear packed(weight.data(), bias.data(), k, n, WeightType::int8);
    cpu::Gemm p = packed.gemm(0, n);
    p.m = m, p.a = blocks.data(), p.a_block = m * cpu::kBlockLd;
    std::vector<float> c(static_cast<size_t>(m * n));
    p.c = c.data(), p.c_ld = n;
    cpu::Workspace space;
    cpu::kernels().product(p, space.floats(cpu::kernels().panel_floats));
    return c;
  }

  // Rows are quantised in blocks of the depth, to within max|x| / 65278 (max / 32639 / 2, the coarser of two grids),
  // and each block is added in fp32.
  void expect_near(const std::vector<float>& c) const {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias[static_cast<size_t>(j)], bound = 0;
        for (int64_t first = 0; first < k; first += cpu::kBlock) {
          double largest = 0, weights = 0, size = 0;
          for (int64_t l = first; l < std::min(k, first + cpu::kBlock); ++l) {
            const double w = weight[static_cast<size_t>(j * k + l)];
            largest = std::max(largest, std::abs(static_cast<double>(a_at(i, l))));
            sum += a_at(i, l) * w, weights += std::abs(w), size += std::abs(a_at(i, l) * w);
          }
          bound += largest / 65278 * weights + std::ldexp(size + std::abs(sum), -22);
        }
        ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, bound) << i << " " << j;
      }
  }
};

}  // namespace

TEST(GemmInt8, ErrsByTheRoundingOfRowsAlone) {
  for (const int64_t m : {1, 2, 3, 7, 20, 150})
    for (const int64_t n : {8, 16, 40, 100})
      for (const int64_t k : {1, 2, 3, 4, 5, 31, 197, 500, 1153}) {
        if (m * n * k > 2'000'000) continue;
        SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k);
        const Int8Product product(m, n, k);
        testing::for_every_level([&] { product.expect_near(product.multiply()); });
      }
}

// The largest sums of a block: all products have one sign.
TEST(GemmInt8, SumsOfALongBlockDoNotOverflow) {
  Int8Product product(4, 16, cpu::kBlock);
  std::fill(product.a.begin(), product.a.end(), -3.0f);
  std::fill(product.weight.begin(), product.weight.end(), -127 / 8.0f);
  testing::for_every_level([&] { product.expect_near(product.multiply()); });
}

TEST(GemmInt8, WhatIsNotFiniteStaysInItsRow) {
  testing::for_every_level([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Int8Product product(20, 70, 101);
      product.a[7 * 101 + 100] = bad;
      const std::vector<float> c = product.multiply();
      for (int64_t i = 0; i < 20; ++i)
        for (int64_t j = 0; j < 70; ++j)
          EXPECT_EQ(std::isfinite(c[static_cast<size_t>(i * 70 + j)]), i != 7) << i << " " << j;
    }
  });
}

}  // namespace sparsight::gemm_int8_test
