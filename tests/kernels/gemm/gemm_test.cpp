// The matrix product of every instruction-set level against sums in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"
#include "tests/kernels/every_level.h"

namespace sparsight::gemm_test {
namespace {

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats aligned_floats(int64_t count) {
  return Floats(static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>((count * 4 + 63) / 64 * 64 + 64))));
}

Floats random_floats(int64_t count, unsigned seed) {
  Floats floats = aligned_floats(count);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) floats[static_cast<size_t>(i)] = normal(engine);
  return floats;
}

enum class Begin { zero, bias, c };
enum class Order { rows, transposed, panels };

struct Case {
  int64_t m, n, k;
  bool a_transposed;
  Order b_order;
  bool stream;
  Begin begin;
};

// Operands of a case, and C before and after.
struct Operands {
  Case shape;
  Floats a, b, bias, pre_activation, c;

  explicit Operands(const Case& s)
      : shape(s),
        a(random_floats(s.a_transposed ? s.k * s.m : cpu::count_blocks(s.k) * s.m * cpu::kBlockLd, 1)),
        b(random_floats(s.k * padded_columns(s), 2)),
        bias(random_floats(s.n, 3)),
        pre_activation(random_floats(s.m * s.n, 4)),
        c(random_floats(s.m * s.n, 5)) {}

  static int64_t padded_columns(const Case& s) {
    const int64_t panels = (s.n + cpu::kPanelColumns - 1) / cpu::kPanelColumns;
    return s.b_order == Order::panels ? panels * cpu::kPanelColumns : s.n;
  }
  float& a_at(int64_t i, int64_t l) const {
    const int64_t block = shape.m * cpu::kBlockLd;
    return a[static_cast<size_t>(shape.a_transposed ? l * shape.m + i
                                                    : l / cpu::kBlock * block + i * cpu::kBlockLd + l % cpu::kBlock)];
  }
  double b_at(int64_t l, int64_t j) const {
    constexpr int64_t kColumns = cpu::kPanelColumns;
    const int64_t at = shape.b_order == Order::transposed ? j * shape.k + l
                       : shape.b_order == Order::panels   ? (j / kColumns * shape.k + l) * kColumns + j % kColumns
                                                          : l * shape.n + j;
    return b[static_cast<size_t>(at)];
  }

  void multiply() {
    for (int64_t i = 0; i < shape.m * shape.n; ++i) c[static_cast<size_t>(i)] = pre_activation[static_cast<size_t>(i)];
    cpu::Gemm p;
    p.m = shape.m, p.n = shape.n, p.k = shape.k;
    p.a = a.get(), p.a_transposed = shape.a_transposed;
    p.a_ld = shape.m, p.a_block = shape.m * cpu::kBlockLd;
    p.b = b.get(), p.b_transposed = shape.b_order == Order::transposed, p.b_panels = shape.b_order == Order::panels;
    p.b_ld = p.b_transposed ? shape.k : shape.n;
    p.c = c.get(), p.c_ld = shape.n;
    p.stream = shape.stream;
    p.accumulate = shape.begin == Begin::c;
    p.bias = shape.begin == Begin::bias ? bias.get() : nullptr;
    const Floats panel = aligned_floats(cpu::kernels().panel_floats);
    std::fill_n(panel.get(), cpu::kernels().panel_floats, 1e3f);
    cpu::kernels().product(p, panel.get());
  }

  // C as chains of multiply-adds over the depth, in fp64 or fp32.
  template <class Number>
  std::vector<Number> chains() const {
    std::vector<Number> out;
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j) {
        const auto at = static_cast<size_t>(i * shape.n + j);
        Number sum = shape.begin == Begin::bias ? bias[static_cast<size_t>(j)]
                     : shape.begin == Begin::c  ? pre_activation[at]
                                                : 0;
        for (int64_t l = 0; l < shape.k; ++l)
          sum = std::fma(static_cast<Number>(a_at(i, l)), static_cast<Number>(b_at(l, j)), sum);
        out.push_back(sum);
      }
    return out;
  }

  // The root mean square error, relative to the root mean square of `sums`.
  double error(const std::vector<double>& sums) const {
    double squares = 0, size = 0;
    for (size_t i = 0; i < sums.size(); ++i) squares += (c[i] - sums[i]) * (c[i] - sums[i]), size += sums[i] * sums[i];
    return std::sqrt(squares / size);
  }
};

}  // namespace

// A chain of k rounded sums has a relative error of about 0.2 sqrt(k) units of 2^-24: the bound is several times that,
// and far below the error of one missing part or one wrong element.
TEST(Gemm, AgreesWithFp64ForEveryShapeAndLayout) {
  for (const int64_t m : {1, 2, 3, 7, 16, 20, 33, 64, 100, 390})
    for (const int64_t n : {8, 40, 100})
      for (const int64_t k : {1, 20, 33, 197, 500, 1600})
        for (const bool a_transposed : {false, true})
          for (const Order b_order : {Order::rows, Order::transposed, Order::panels})
            for (const Begin begin : {Begin::zero, Begin::bias, Begin::c}) {
              if (m * n * k > 1'500'000 || (a_transposed && b_order == Order::panels)) continue;
              Operands x({m, n, k, a_transposed, b_order, /*stream=*/k % 2 == 0, begin});
              const std::vector<double> sums = x.chains<double>();
              testing::for_every_level([&] {
                x.multiply();
                EXPECT_LT(x.error(sums), std::ldexp(2 + 0.7 * std::sqrt(k), -24))
                    << m << " x " << n << " x " << k << " " << a_transposed << static_cast<int>(b_order)
                    << static_cast<int>(begin);
              });
            }
}

TEST(Gemm, IsOneChainOfMultiplyAddsWithConsistentArithmetic) {
  if (!testing::any_level_fuses()) GTEST_SKIP() << "this CPU has no fused multiply-add";
  set_arithmetic("consistent");
  for (const int64_t m : {1, 3, 7, 16, 20, 33, 100})
    for (const int64_t n : {8, 40, 100})
      for (const int64_t k : {1, 20, 197, 500})
        for (const bool a_transposed : {false, true})
          for (const Order b_order : {Order::rows, Order::transposed, Order::panels})
            for (const Begin begin : {Begin::zero, Begin::bias, Begin::c}) {
              if (a_transposed && b_order == Order::panels) continue;
              Operands x({m, n, k, a_transposed, b_order, /*stream=*/k % 2 == 0, begin});
              const std::vector<float> chains = x.chains<float>();
              testing::for_every_level([&] {
                if (active_isa() == "baseline") return;
                x.multiply();
                EXPECT_TRUE(std::equal(chains.begin(), chains.end(), x.c.get()))
                    << m << " x " << n << " x " << k << " " << a_transposed << static_cast<int>(b_order)
                    << static_cast<int>(begin);
              });
            }
  set_arithmetic("");
}

// The three bf16 parts of the AMX level round less often than a chain of multiply-adds.
TEST(Gemm, PartsOnTilesAreNoLessExactThanAChain) {
  if (isa_names().back() != "amx") GTEST_SKIP() << "this CPU has no AMX";
  Operands x({64, 384, 384, false, Order::rows, false, Begin::zero});
  const std::vector<double> sums = x.chains<double>();
  set_isa("avx512");
  x.multiply();
  const double chain = x.error(sums);
  set_isa("amx");
  x.multiply();
  EXPECT_LT(x.error(sums), chain);
  set_isa("");
}

TEST(Gemm, WhatIsNotFiniteStaysInItsRow) {
  testing::for_every_level([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const int64_t m : {10, 40})
        for (const Order b_order : {Order::rows, Order::transposed, Order::panels}) {
          Operands x({m, 70, 100, false, b_order, false, Begin::zero});
          x.a_at(7, 50) = bad;
          x.multiply();
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < 70; ++j)
              EXPECT_EQ(std::isfinite(x.c[static_cast<size_t>(i * 70 + j)]), i != 7) << i << " " << j;
        }
    }
  });
}

}  // namespace sparsight::gemm_test
