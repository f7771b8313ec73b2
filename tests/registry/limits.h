// Shared helpers of the tests of routers, experts and losses at their limits.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/registry/layers.h"
#include "tests/support/near.h"

namespace sparsight::limits_test {

using test::LayerForm;
using test::make_layer;
using test::Pass;
using test::run_layer;

inline constexpr int64_t kImages = 4, kPerImage = 10, kTokens = kImages * kPerImage, kWidth = 8, kExperts = 4;
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

inline at::Tensor tokens(at::ScalarType type = torch::kFloat) {
  return test::random_tensor({kTokens, kWidth}, 3, type);
}

inline bool all_finite(const at::Tensor& x) { return torch::isfinite(x).all().item<bool>(); }

inline void expect_finite(const Pass& pass, const std::string& what) {
  for (const auto& [name, value] : pass.all) EXPECT_TRUE(all_finite(value)) << what << ": " << name;
}

// Output, losses and gradients with 1, 2 and 4 threads.
template <class Run>
void expect_same_bits_for_any_number_of_threads(const Run& run) {
  const int threads = at::get_num_threads();
  std::vector<std::vector<std::pair<std::string, at::Tensor>>> all;
  for (const int n : {1, 2, 4}) {
    at::set_num_threads(n);
    all.push_back(run());
  }
  at::set_num_threads(threads);
  for (size_t n = 1; n < all.size(); ++n) {
    ASSERT_EQ(all[n].size(), all[0].size());
    for (size_t i = 0; i < all[0].size(); ++i)
      EXPECT_TRUE(torch::equal(all[n][i].second, all[0][i].second))
          << all[0][i].first << " with " << (n == 1 ? 2 : 4) << " threads, largest difference "
          << (all[n][i].second - all[0][i].second).abs().max().item<double>();
  }
}

// Tolerance between two summation orders.
inline double rounding(at::ScalarType type) { return type == torch::kDouble ? 1e-12 : 1e-5; }

inline void expect_same(const Pass& got, const Pass& want, double tolerance) {
  ASSERT_EQ(got.all.size(), want.all.size());
  for (size_t i = 0; i < want.all.size(); ++i) {
    const auto& [name, value] = want.all[i];
    EXPECT_EQ(got.all[i].first, name);
    EXPECT_TRUE(test::near(got.all[i].second, value, tolerance * (1 + value.abs().max().item<double>()))) << name;
  }
}

}  // namespace sparsight::limits_test
