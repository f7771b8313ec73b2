// Products with int8 weights at every instruction-set level, against a scalar loop over int32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/workspace.h"
#include "tests/kernels/every_level.h"

namespace sparsight::gemm_int8_test {
namespace {

using testing::for_every_level;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// Numbers of a row quantised with one scale, max / 127 (integers_inl.h, quantise.h).
struct Quantised {
  std::vector<int32_t> numbers;
  float scale = 0;
};
float largest(const float* x, int64_t count) {
  float most = 0;
  for (int64_t l = 0; l < count; ++l) most = std::max(most, std::abs(x[l]));
  return most;
}
Quantised quantised_row(const float* x, int64_t count) {
  const float most = largest(x, count), inverse = most > 0 ? 127 / most : 0;
  Quantised q{{}, most / 127};
  for (int64_t l = 0; l < count; ++l) q.numbers.push_back(static_cast<int32_t>(std::nearbyint(x[l] * inverse)));
  return q;
}
Quantised quantised_weights(const float* w, int64_t count) {
  Quantised q{{}, largest(w, count) / 127};
  for (int64_t l = 0; l < count; ++l) q.numbers.push_back(static_cast<int32_t>(std::nearbyint(w[l] / q.scale)));
  return q;
}

// C [m,n] = A [m,k] B [n,k]^T + bias.
struct Product {
  int64_t m, n, k;
  std::vector<float> a, b, bias;

  Product(int64_t rows, int64_t columns, int64_t depth) : m(rows), n(columns), k(depth) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    for (auto* values : {&a, &b, &bias}) {
      values->resize(static_cast<size_t>(values == &a ? m * k : values == &b ? n * k : n));
      for (float& value : *values) value = normal(engine);
    }
  }
  const float* a_row(int64_t i) const { return a.data() + i * k; }
  const float* b_row(int64_t j) const { return b.data() + j * k; }

  // Whole numbers with 127 as the largest of each row's block and of each row of B: all scales are 1.
  void make_whole() {
    const auto whole = [](float& value) { value = std::clamp(std::nearbyint(value * 50), -127.0F, 127.0F); };
    for (auto* values : {&a, &b, &bias}) std::ranges::for_each(*values, whole);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; l += cpu::kBlock)
        a[static_cast<size_t>(i * k + l + i % std::min(cpu::kBlock, k - l))] = i % 2 == 0 ? 127 : -127;
    for (int64_t j = 0; j < n; ++j) b[static_cast<size_t>(j * k + j % k)] = j % 3 == 0 ? -127 : 127;
  }

  std::vector<float> multiply() const {
    std::vector<float> rows(static_cast<size_t>(cpu::blocks_floats(k, m)), kNan);  // padding must not be read
    cpu::to_blocks(a.data(), m, k, rows.data());
    const cpu::PackedLinear packed(b.data(), bias.data(), k, n, WeightType::int8);
    cpu::Gemm p = packed.gemm(0, n);
    p.m = m;
    p.a = rows.data(), p.a_block = m * cpu::kBlockLd;
    std::vector<float> c(static_cast<size_t>(m * n));
    p.c = c.data(), p.c_ld = n;
    cpu::Workspace space;
    cpu::kernels().product(p, space.floats(cpu::kernels().panel_floats));
    return c;
  }

  // The product by its definition: sums of each block of the depth in int32, scaled and added in fp32.
  std::vector<float> expected() const {
    std::vector<Quantised> weights;
    for (int64_t j = 0; j < n; ++j) weights.push_back(quantised_weights(b_row(j), k));
    std::vector<float> c;
    for (int64_t i = 0; i < m; ++i) {
      std::vector<float> row = bias;
      for (int64_t first = 0; first < k; first += cpu::kBlock) {
        const int64_t depth = std::min(cpu::kBlock, k - first);
        const Quantised x = quantised_row(a_row(i) + first, depth);
        for (size_t j = 0; j < row.size(); ++j) {
          int32_t sum = 0;
          for (size_t l = 0; l < x.numbers.size(); ++l)
            sum += x.numbers[l] * weights[j].numbers[static_cast<size_t>(first) + l];
          row[j] = std::fma(static_cast<float>(sum), x.scale * weights[j].scale, row[j]);
        }
      }
      c.insert(c.end(), row.begin(), row.end());
    }
    return c;
  }
};

// Sizes around those of tiles, of vectors and of what the kernels multiply together.
template <class Body>
void for_products(const Body& body) {
  for (const int64_t m : {1, 3, 5, 9, 16, 17, 33, 150})
    for (const int64_t n : {3, 16, 40, 100})
      for (const int64_t k : {1, 2, 5, 63, 64, 66, 384, 385, 500}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        body(Product(m, n, k));
      }
}

}  // namespace

// 1 and -2 in units of 2 / 127 are 63.5, to even 64, and -127; 3 and 1 in units of 3 / 127 are 127 and 42.
TEST(GemmInt8, ByHand) {
  Product p(1, 1, 2);
  p.a = {1, -2}, p.b = {3, 1}, p.bias = {0.5F};
  const double want = (64 * 127 - 127 * 42) * (2.0 / 127) * (3.0 / 127) + 0.5;
  for_every_level([&] { EXPECT_NEAR(p.multiply()[0], want, 1e-6); });
}

// Sums below 2^24 are whole numbers in fp32 too.
TEST(GemmInt8, SumsAreExactAtEveryLevel) {
  for_every_level([] {
    for_products([](Product p) {
      p.make_whole();
      EXPECT_EQ(p.multiply(), p.expected());
    });
  });
}

// The largest sums: 384 * 127 * 127 of either sign.
TEST(GemmInt8, TheLargestSumsDoNotOverflow) {
  for (const float sign : {1.0F, -1.0F}) {
    Product p(20, 20, cpu::kBlock);
    std::ranges::fill(p.a, 127.0F), std::ranges::fill(p.b, 127 * sign), std::ranges::fill(p.bias, 0.0F);
    for_every_level([&] { EXPECT_EQ(p.multiply(), std::vector<float>(p.bias.size() * 20, sign * 384 * 127 * 127)); });
  }
}

// Everything but the sums is rounded, in the same order at all levels; only "baseline" and "simd128" have no fused
// multiply-add.
TEST(GemmInt8, HasTheBitsOfItsDefinition) {
  for_products([](const Product& p) {
    const std::vector<float> want = p.expected();
    const float size = largest(want.data(), static_cast<int64_t>(want.size()));
    for_every_level([&] {
      const std::vector<float> got = p.multiply();
      const float allowed = testing::fuses(active_isa()) ? 0 : 1e-6F * size;
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], allowed) << i;
    });
  });
}

// Rounding to multiples of s errs by s / sqrt 12 on average, and both operands of normal numbers, of size 1, are
// rounded to multiples of max / 127. Relative to the result, that is sqrt(s1^2 + s2^2) / sqrt 12: about 1 % with a
// depth of 384, where max is about 3.
TEST(GemmInt8, ErrsAsTheRoundingOfBothOperandsSays) {
  Product p(50, 100, cpu::kBlock);
  std::ranges::fill(p.bias, 0.0F);
  const auto mean_square_scale = [&](const std::vector<float>& rows) {
    double sum = 0;
    for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(p.k))
      sum += std::pow(largest(rows.data() + first, p.k) / 127, 2);
    return sum * static_cast<double>(p.k) / static_cast<double>(rows.size());
  };
  const double typical = std::sqrt((mean_square_scale(p.a) + mean_square_scale(p.b)) / 12);
  EXPECT_NEAR(typical, 0.01, 0.001);
  for_every_level([&] {
    const std::vector<float> got = p.multiply();
    double squares = 0, size = 0;
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l) sum += double{p.a_row(i)[l]} * p.b_row(j)[l];
        squares += std::pow(got[static_cast<size_t>(i * p.n + j)] - sum, 2), size += sum * sum;
      }
    EXPECT_NEAR(std::sqrt(squares / size), typical, 0.05 * typical);
  });
}

TEST(GemmInt8, NumbersThatAreNotFiniteStayInTheirRow) {
  for_every_level([] {
    for (const float value : {kNan, kInfinity, -kInfinity}) {
      Product p(20, 40, 70);
      const std::vector<float> clean = p.multiply();
      p.a[static_cast<size_t>(5 * p.k + 69)] = value;
      const std::vector<float> got = p.multiply();
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(i / 40 == 5 ? !std::isfinite(got[i]) : got[i] == clean[i]) << i << " " << value;
    }
  });
}

TEST(GemmInt8, RowsOfZerosAndOfTinyNumbersGiveTheBias) {
  for (const float value : {0.0F, 1e-40F, 1e-35F}) {
    Product p(10, 20, 30);
    std::ranges::fill(p.a, value);
    std::vector<float> want;
    for (int64_t i = 0; i < p.m; ++i) want.insert(want.end(), p.bias.begin(), p.bias.end());
    for_every_level([&] { EXPECT_EQ(p.multiply(), want); });
  }
}

}  // namespace sparsight::gemm_int8_test
