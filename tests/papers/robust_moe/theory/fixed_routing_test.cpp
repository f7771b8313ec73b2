#include "sparsight/papers/robust_moe/theory/fixed_routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/papers/robust_moe/theory/instances.h"
#include "tests/support/errors.h"

namespace sparsight::robust_moe::fixed_routing_test {
namespace {

using testing::error_text;

at::Tensor numbers(std::initializer_list<double> values) { return at::tensor(values, at::kDouble); }

double distance(const at::Tensor& found, std::initializer_list<double> expected) {
  return (found.flatten() - numbers(expected)).abs().max().item<double>();
}

}  // namespace

// Twice (1, 2): the Gram matrix 2 (1, 2)^T (1, 2) has rank 1, eigenvalue 10 and the pseudo-inverse (1, 2)^T (1, 2)
// / 50. The solution of smallest norm for the targets 3 and 4 is 3.5 (1, 2) / 5.
TEST(FixedRouting, A45_RankDeficientInputs) {
  const at::Tensor inputs = numbers({1, 2, 1, 2}).view({2, 2});
  const GramInverse inverse = gram_inverse(inputs, 1e-9);
  EXPECT_EQ(inverse.eigenvalues.numel(), 1);
  EXPECT_NEAR(inverse.eigenvalues[0].item<double>(), 10, 1e-12);
  EXPECT_LT(distance(inverse.matrix, {.02, .04, .04, .08}), 1e-14);
  const FixedRouting fit = fit_fixed_routing({{inputs}, {numbers({3, 4})}});
  EXPECT_LT(distance(fit.weights, {.7, 1.4}), 1e-14);
  EXPECT_LT(distance(fit.expert_weights[0], {.7, 1.4}), 1e-14);
}

// What counts as zero follows from all data: an eigenvalue of 1e-14 beside one of 1 is none, in the dense model and in
// the expert that has nothing else. Alone, that expert has a solution.
TEST(FixedRouting, A45_OneToleranceForAll) {
  const at::Tensor large = numbers({1, 0}).view({1, 2}), small = numbers({0, 1e-7}).view({1, 2}), one = numbers({1});
  const FixedRouting fit = fit_fixed_routing({{large, small}, {one, one}});
  EXPECT_DOUBLE_EQ(fit.zero, 1e-10);
  EXPECT_LT(distance(fit.weights, {1, 0}), 1e-12);
  EXPECT_EQ(fit.expert_norms()[1], 0);
  EXPECT_NEAR(fit_fixed_routing({{small}, {one}}).expert_norms()[0], 1e7, 1);
  EXPECT_EQ(fit_fixed_routing({{at::zeros({2, 3}, at::kDouble)}, {numbers({1, 2})}}).norm(), 0);
}

// Section 7.2: X^T X = sum X_i^T X_i, X^T y = sum X_i^T y_i, w* = (X^T X)^+ sum X_i^T X_i w_i*.
TEST(FixedRouting, A45_IdentitiesOfTheNormalEquations) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RoutedData data = random_instance(2 + static_cast<int64_t>(seed % 3), 0.1, seed % 2 == 1, seed);
    const RoutingIdentities found = check_identities(data, fit_fixed_routing(data));
    EXPECT_LT(found.gram, 1e-12) << seed;
    EXPECT_LT(found.products, 1e-12) << seed;
    EXPECT_LT(found.weights, 1e-8) << seed;
  }
  const RoutedData data = scalar_case(1, 3);
  FixedRouting wrong = fit_fixed_routing(data);
  wrong.expert_weights[0] = wrong.expert_weights[0] + 1;
  EXPECT_NEAR(check_identities(data, wrong).weights, 0.2, 1e-12) << "2 instead of 2.5";
}

// Section 7.2, "Numbers".
TEST(FixedRouting, A46_OrthogonalInputs) {
  const FixedRouting fit = fit_fixed_routing(two_expert_case(TwoExpertCase::orthogonal));
  EXPECT_LT(distance(fit.expert_weights[0], {1, -1, 0, 0}), 1e-12);
  EXPECT_LT(distance(fit.expert_weights[1], {0, 0, .25, 1.75}), 1e-12);
  EXPECT_LT(distance(fit.weights, {1, -1, .25, 1.75}), 1e-12);
  EXPECT_NEAR(fit.expert_norms()[0], 1.414214, 1e-6);
  EXPECT_NEAR(fit.expert_norms()[1], 1.767767, 1e-6);
  EXPECT_NEAR(fit.norm(), 2.263846, 1e-6);
}

// Section 7.2: with the same targets w* = w_1* = w_2*; with opposite ones w* = 0, and not with the same, as printed.
TEST(FixedRouting, A46_EqualInputs) {
  const FixedRouting same = fit_fixed_routing(two_expert_case(TwoExpertCase::same_targets)),
                     opposite = fit_fixed_routing(two_expert_case(TwoExpertCase::opposite_targets));
  EXPECT_NEAR(same.norm(), 1.414214, 1e-6);
  EXPECT_NEAR(same.expert_norms()[1], 1.414214, 1e-6);
  EXPECT_LT(opposite.norm(), 1e-12);
  EXPECT_NEAR(opposite.expert_norms()[0], 1.414214, 1e-6);
  EXPECT_NEAR(opposite.expert_norms()[1], 1.414214, 1e-6);
}

// Section 7.4: if the dense solution fits every sample, it is feasible for each expert.
TEST(FixedRouting, A51_InterpolatingExpertsAreNeverLarger) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const LabelledRows rows = gaussian_rows(24, 32, seed);
    for (const int64_t experts : {2, 5, 24}) {
      const FixedRouting fit = fit_fixed_routing(split_randomly(rows, experts, seed));
      EXPECT_LT((rows.inputs.matmul(fit.weights) - rows.labels).abs().max().item<double>(), 1e-9);
      EXPECT_LE(norm_ratios(fit).largest, 1 + 1e-9) << seed << " " << experts;
    }
  }
  // 24 samples of width 3 are not interpolated, and some expert with few of them is larger.
  EXPECT_GT(norm_ratios(fit_fixed_routing(split_randomly(gaussian_rows(24, 3, 1), 5, 1))).largest, 1);
}

// Norms 3 and 4 on orthogonal coordinates: dense 5, rms sqrt((9 + 16) / 2) / 5.
TEST(FixedRouting, RatiosByHand) {
  const NormRatios found = norm_ratios(
      fit_fixed_routing({{numbers({1, 0}).view({1, 2}), numbers({0, 1}).view({1, 2})}, {numbers({3}), numbers({4})}}));
  EXPECT_NEAR(found.rms, std::sqrt(.5), 1e-12);
  EXPECT_NEAR(found.largest, .8, 1e-12);
  EXPECT_NE(error_text([] { norm_ratios(fit_fixed_routing(scalar_case(1, -1))); }).find("undefined"),
            std::string::npos);
}

TEST(FixedRouting, RefusesDataThatDoesNotFit) {
  const at::Tensor x = numbers({1, 2}).view({1, 2}), y = numbers({1});
  const auto refused = [](const RoutedData& data, const char* why) {
    EXPECT_NE(error_text([&] { fit_fixed_routing(data); }).find(why), std::string::npos) << why;
  };
  refused({}, "at least 1 expert");
  refused({{x, x}, {y}}, "got 2 and 1");
  refused({{x, numbers({1}).view({1, 1})}, {y, y}}, "expert 1 has inputs of size");
  refused({{x}, {numbers({1, 2})}}, "the same D for all experts");
  refused({{x.to(at::kFloat)}, {y}}, "not float64");
  refused({{x}, {numbers({std::numeric_limits<double>::quiet_NaN()})}}, "not finite");
}

}  // namespace sparsight::robust_moe::fixed_routing_test
