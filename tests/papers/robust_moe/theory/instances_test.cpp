#include "sparsight/papers/robust_moe/theory/instances.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/TensorOperators.h>

#include "sparsight/papers/robust_moe/theory/lcg.h"
#include "tests/support/errors.h"

namespace sparsight::robust_moe::instances_test {

using testing::error_text;

// Section 7.5, "Reproducible random numbers", seed 1. The first state is 1664525 + 1013904223 = 1015568748.
TEST(Lcg, A50_FirstNumbersOfSeed1) {
  Lcg uniform(1), normal(1);
  EXPECT_EQ(uniform.uniform(), 1015568748.5 / 4294967296);
  for (const double expected : {.369271, .504242, .704883}) EXPECT_NEAR(uniform.uniform(), expected, 1e-6);
  for (const double expected : {-1.156834, -.327303, -1.667173, -.670358}) EXPECT_NEAR(normal.normal(), expected, 1e-6);
}

// Section 7.5, experiment 7.5a.
TEST(Instances, A50_TheNormGrowsWithTheRootOfN) {
  const std::pair<int64_t, double> expected[] = {{8, 2.721885}, {16, 4.382540}, {32, 6.734429}, {64, 10.828578}};
  for (const auto& [samples, norm] : expected)
    EXPECT_NEAR(fit_fixed_routing(split_consecutive(gaussian_rows(samples, 128, 11), 1)).norm(), norm, 1e-6) << samples;
}

// Section 7.5, experiment 7.5b; rms of splits in turn from the caution after 7.5c.
TEST(Instances, A50_BlocksReachTheRootOfE) {
  const LabelledRows rows = block_rows(16, 7);
  const FixedRouting dense = fit_fixed_routing(split_consecutive(rows, 1));
  EXPECT_NEAR(dense.norm(), 12.122922, 1e-6);
  EXPECT_LT((rows.inputs.matmul(dense.weights) - rows.labels).abs().max().item<double>(), 1e-9);
  const std::pair<int64_t, double> largest[] = {{1, 1}, {2, .736178}, {4, .589699}, {8, .473962}, {16, .435742}};
  for (const auto& [experts, expected] : largest) {
    const NormRatios ratios = norm_ratios(fit_fixed_routing(split_consecutive(rows, experts)));
    EXPECT_NEAR(ratios.rms, 1 / std::sqrt(static_cast<double>(experts)), 1e-12) << experts;
    EXPECT_NEAR(ratios.largest, expected, 1e-6) << experts;
  }
  const std::pair<int64_t, double> in_turn[] = {{2, .498762}, {4, .285748}, {8, .202054}, {16, .142874}};
  for (const auto& [experts, rms] : in_turn)
    EXPECT_NEAR(norm_ratios(fit_fixed_routing(split_modulo(rows, experts))).rms, rms, 1e-6) << experts;
}

// Section 7.5, experiment 7.5c. The last is the square, nearly singular case.
TEST(Instances, A50_ExpertsGetWorseInTheNoisyRegime) {
  const LabelledRows rows = gaussian_rows(256, 16, 3);
  EXPECT_NEAR(fit_fixed_routing(split_modulo(rows, 1)).norm(), 1.155863, 1e-6);
  const auto largest = [&](int64_t experts) {
    double norm = 0;
    for (const double each : fit_fixed_routing(split_modulo(rows, experts)).expert_norms()) norm = std::max(norm, each);
    return norm;
  };
  EXPECT_NEAR(largest(2), 1.637523, 1e-6);
  EXPECT_NEAR(largest(4), 2.478361, 1e-6);
  EXPECT_NEAR(largest(8), 5.579531, 1e-6);
  EXPECT_NEAR(largest(16) / 223.955244, 1, 1e-4);
}

TEST(Instances, SplitsKeepEveryRowOnce) {
  const LabelledRows rows = gaussian_rows(10, 4, 5);
  const RoutedData consecutive = split_consecutive(rows, 3), modulo = split_modulo(rows, 3),
                   random = split_randomly(rows, 3, 1);
  EXPECT_TRUE(consecutive.all_inputs().equal(rows.inputs));
  EXPECT_EQ(consecutive.inputs[0].size(0), 4);  // rows 0 to 3: 3 * 3 / 10 = 0
  EXPECT_TRUE(modulo.inputs[1][2].equal(rows.inputs[7]));
  EXPECT_NEAR(random.all_inputs().sum().item<double>(), rows.inputs.sum().item<double>(), 1e-12);
  EXPECT_EQ(random.all_inputs().size(0), 10);
  EXPECT_NE(error_text([&] { split_modulo(rows, 11); }).find("1 to 10 experts"), std::string::npos);
}

// Rank 1 to 3 each, orthogonal without a tilt, another instance for another seed.
TEST(Instances, RandomOnesAreOrthogonalWithoutATilt) {
  const RoutedData data = random_instance(3, 0, false, 4);
  EXPECT_EQ(data.experts(), 3);
  EXPECT_EQ(data.inputs[0].matmul(data.inputs[1].t()).abs().max().item<double>(), 0);
  EXPECT_TRUE(random_instance(3, 0, false, 4).all_inputs().equal(data.all_inputs()));
  EXPECT_GT(random_instance(3, .1, false, 4)
                .inputs[0]
                .matmul(random_instance(3, .1, false, 4).inputs[1].t())
                .abs()
                .max()
                .item<double>(),
            0);
  for (uint64_t seed = 0; seed < 9; ++seed) EXPECT_LE(random_instance(3, 0, true, seed).inputs[0].size(1), 4);
  EXPECT_NE(random_instance(3, 0, false, 5).all_targets().sum().item<double>(),
            data.all_targets().sum().item<double>());
}

}  // namespace sparsight::robust_moe::instances_test
