// The convolution of training and batch norm against their definitions in fp64, at every level, in fp32 and, where the
// level multiplies it, bf16.
#include "sparsight/kernels/conv/conv2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sparsight/core/random.h"
#include "sparsight/kernels/elementwise/batch_norm.h"
#include "sparsight/kernels/kernels.h"
#include "tests/kernels/every_level.h"

namespace sparsight::conv2d_kernel_test {
namespace {

std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  RandomStream random(seed, "test");
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

double largest_error(const std::vector<float>& values, const std::vector<double>& exact) {
  double error = 0, scale = 1;
  for (size_t i = 0; i < exact.size(); ++i) {
    error = std::max(error, std::abs(values[i] - exact[i]));
    scale = std::max(scale, std::abs(exact[i]));
  }
  return error / scale;
}

// Calls body(index of y, of x, of the weight) for each product of the convolution.
template <class Body>
void each_product(const cpu::Conv2d& c, const Body& body) {
  for (int64_t b = 0; b < c.images; ++b)
    for (int64_t i = 0; i < c.down.outputs; ++i)
      for (int64_t j = 0; j < c.across.outputs; ++j)
        for (int64_t ky = 0; ky < c.kernel; ++ky)
          for (int64_t kx = 0; kx < c.kernel; ++kx) {
            const int64_t y = i * c.stride - c.down.before + ky, x = j * c.stride - c.across.before + kx;
            if (y < 0 || y >= c.down.side || x < 0 || x >= c.across.side) continue;
            for (int64_t o = 0; o < c.outputs; ++o)
              for (int64_t k = 0; k < c.inputs; ++k)
                body(((b * c.down.outputs + i) * c.across.outputs + j) * c.outputs + o,
                     ((b * c.down.side + y) * c.across.side + x) * c.inputs + k,
                     ((o * c.kernel + ky) * c.kernel + kx) * c.inputs + k);
          }
}

const std::vector<cpu::Conv2d>& cases() {
  static const std::vector<cpu::Conv2d> all{
      {2, 3, 4, 3, 1, {5, 5, 1}, {7, 7, 1}},       {3, 5, 7, 3, 2, {6, 3, 0}, {4, 2, 0}},
      {1, 2, 5, 2, 3, {7, 3, 1}, {11, 4, 2}},      {2, 4, 3, 1, 2, {9, 5, 0}, {8, 4, 0}},
      {3, 48, 33, 3, 1, {14, 14, 1}, {15, 15, 1}},
  };
  return all;
}

}  // namespace

TEST(Conv2dKernel, AgreesWithItsDefinition) {
  for (const cpu::Conv2d& shape : cases()) {
    const int64_t x_count = shape.images * shape.down.side * shape.across.side * shape.inputs,
                  y_count = shape.images * shape.down.outputs * shape.across.outputs * shape.outputs,
                  w_count = shape.outputs * shape.kernel * shape.kernel * shape.inputs;
    const std::vector<float> x = random_numbers(x_count, 1), w = random_numbers(w_count, 2),
                             bias = random_numbers(shape.outputs, 3), grad = random_numbers(y_count, 4);
    std::vector<double> y(grad.size()), x_grad(x.size()), w_grad(w.size()), bias_grad(bias.size());
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = bias[i % bias.size()];
      bias_grad[i % bias.size()] += grad[i];
    }
    each_product(shape, [&](int64_t out, int64_t in, int64_t tap) {
      const auto o = static_cast<size_t>(out), i = static_cast<size_t>(in), t = static_cast<size_t>(tap);
      y[o] += static_cast<double>(x[i]) * w[t];
      x_grad[i] += static_cast<double>(grad[o]) * w[t];
      w_grad[t] += static_cast<double>(grad[o]) * x[i];
    });
    testing::at_every_level([&](cpu::Threads& threads) {
      for (const bool bf16 : {false, true}) {
        if (bf16 && !cpu::kernels().multiplies_bf16) continue;
        cpu::Conv2d conv = shape;
        conv.bf16 = bf16;
        const double tolerance = bf16 ? 2e-2 : 1e-5;
        std::vector<float> got_y(y.size()), got_x(x.size()), got_w(w.size()), got_bias(bias.size());
        cpu::conv2d(threads, conv, x.data(), w.data(), bias.data(), got_y.data());
        cpu::conv2d_backward_input(threads, conv, grad.data(), w.data(), got_x.data());
        cpu::conv2d_backward_weight(threads, conv, grad.data(), x.data(), got_w.data(), got_bias.data());
        EXPECT_LT(largest_error(got_y, y), tolerance) << bf16;
        EXPECT_LT(largest_error(got_x, x_grad), tolerance) << bf16;
        EXPECT_LT(largest_error(got_w, w_grad), tolerance) << bf16;
        EXPECT_LT(largest_error(got_bias, bias_grad), 1e-5) << bf16;
      }
    });
  }
}

// 300 rows: more than a task's. Channel c has the values c, c + 1, c + 2 in turn.
TEST(BatchNormKernel, HasTheMomentsOfAllRows) {
  constexpr int64_t kRows = 300, kChannels = 19;
  std::vector<float> x;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kChannels; ++c) x.push_back(static_cast<float>(r % 3 + c));
  testing::at_every_level([&](cpu::Threads& threads) {
    std::vector<double> mean(kChannels), variance(kChannels);
    cpu::batch_moments(threads, {kRows, kChannels}, x.data(), mean.data(), variance.data());
    for (int64_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(mean[static_cast<size_t>(c)], static_cast<double>(c + 1), 1e-5);
      EXPECT_NEAR(variance[static_cast<size_t>(c)], 2.0 / 3, 1e-5);
    }
  });
}

}  // namespace sparsight::conv2d_kernel_test
