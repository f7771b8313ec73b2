#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::kernels_test {
namespace {

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

}  // namespace

// 1 + erf is in 0 .. 2, where the spacing of fp32 is up to 2^-23: the error of gelu is a few of those times |x| / 2.
TEST(Kernels, GeluIsAccurateToAFewUnitsInTheLastPlace) {
  std::vector<float> x, y, slope;
  for (float v = -12; v < 12; v += 0.00037f) x.push_back(v);
  for (float v = 1e-30f; v < 1; v *= 3) x.push_back(v);
  y.resize(x.size());
  slope.resize(x.size());
  for (const std::string& name : isa_names()) {
    set_isa(name);
    cpu::kernels().activate(Activation::gelu, x.data(), y.data(), slope.data(), static_cast<int64_t>(x.size()));
    double worst = 0, worst_slope = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double unit = std::max(std::abs(0.5 * x[i]), 1e-30) * std::ldexp(1.0, -23);
      worst = std::max(worst, std::abs(y[i] - gelu(x[i])) / unit);
      worst_slope = std::max(worst_slope, std::abs(slope[i] - gelu_slope(x[i])) * std::ldexp(1.0, 23));
    }
    EXPECT_LT(worst, 4) << name;
    EXPECT_LT(worst_slope, 4) << name;
  }
  set_isa("");
}

// In fp64 from the formula; the slope by a central difference of it.
TEST(Kernels, GeluTanhFollowsItsFormula) {
  const auto formula = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  };
  std::vector<float> x;
  for (int i = -512; i <= 512; ++i) x.push_back(static_cast<float>(i) / 64);
  std::vector<float> y(x.size()), slope(x.size());
  for (const std::string& name : isa_names()) {
    set_isa(name);
    cpu::kernels().activate(Activation::gelu_tanh, x.data(), y.data(), slope.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], formula(x[i]), 1e-6 * std::max(1.0, std::abs(formula(x[i])))) << name << " " << x[i];
      EXPECT_NEAR(slope[i], (formula(x[i] + 1e-5) - formula(x[i] - 1e-5)) / 2e-5, 2e-6) << name << " " << x[i];
    }
  }
  set_isa("");
}

TEST(Kernels, ActivationsPassNanAndKeepTheirLimits) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{nan, inf, -100, 100, 0};
  for (const std::string& name : isa_names()) {
    set_isa(name);
    for (const Activation activation : {Activation::gelu, Activation::relu, Activation::silu, Activation::gelu_tanh}) {
      std::vector<float> y(5), slope(5);
      cpu::kernels().activate(activation, x.data(), y.data(), slope.data(), 5);
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(slope[0])) << name;
      EXPECT_EQ(y[1], inf) << name;
      EXPECT_NEAR(y[2], 0, 1e-30) << name;
      EXPECT_FLOAT_EQ(y[3], 100) << name;
      EXPECT_EQ(y[4], 0) << name;
      EXPECT_NEAR(slope[2], 0, 1e-30) << name;
      EXPECT_FLOAT_EQ(slope[3], 1) << name;
    }
  }
  set_isa("");
}

// max(0, -0) is the second number, -0, though instructions of some architectures return the first.
TEST(Kernels, ReluKeepsTheSignOfZero) {
  const std::vector<float> x{-0.0f, 0.0f, -0.0f, -0.0f, 0.0f};
  for (const std::string& name : isa_names()) {
    set_isa(name);
    std::vector<float> y(5), slope(5);
    cpu::kernels().activate(Activation::relu, x.data(), y.data(), slope.data(), 5);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::signbit(y[i]), std::signbit(x[i])) << name << " " << i;
  }
  set_isa("");
}

TEST(Kernels, AnUnknownLevelIsRefusedWithTheOnesThereAre) {
  EXPECT_THROW(set_isa("sse9"), UsageError);
  set_isa("baseline");
  EXPECT_EQ(active_isa(), "baseline");
  set_isa("");
}

TEST(Kernels, EveryLevelHasEachOfTheList) {
  for (const std::string& level : isa_names()) {
    set_isa(level);
    int entries = 0;
#define KERNEL(entry, implementation, result, parameters) \
  EXPECT_NE(cpu::kernels().entry, nullptr) << level;      \
  ++entries;
#include "sparsight/kernels/kernels.inc"
#undef KERNEL
#define KERNEL(entry, implementation, result, parameters)     \
  EXPECT_NE(cpu::training_kernels().entry, nullptr) << level; \
  ++entries;
#include "sparsight/kernels/training_kernels.inc"
#undef KERNEL
    EXPECT_GE(entries, 20);
    EXPECT_GE(cpu::kernels().panel_floats, 1);
    EXPECT_GE(cpu::kernels().task_rows, 1);
  }
  set_isa("");
}

}  // namespace sparsight::kernels_test
