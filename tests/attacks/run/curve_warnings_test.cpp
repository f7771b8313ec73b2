// What a curve of robust accuracy over epsilon gives away.
#include "sparsight/attacks/run/curve_warnings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace sparsight::curve_warnings_test {
namespace {

// An attack that the first `robust` of 100 images withstand.
CurveAttack make_attack(const std::string& given, double epsilon, int64_t robust, bool gradients = true) {
  return {given, epsilon, gradients, torch::arange(100) < robust};
}

std::vector<std::string> collect_warnings(const std::vector<int64_t>& robust, double last = 0.1,
                                          bool gradients = true) {
  std::vector<CurveAttack> attacks;
  for (size_t i = 0; i < robust.size(); ++i) {
    const bool at_end = i + 1 == robust.size();
    attacks.push_back(make_attack(at_end ? "last" : std::to_string(i), at_end ? last : 0.001 * static_cast<double>(i),
                                  robust[i], gradients));
  }
  return curve_warnings(attacks, 0.5);
}

}  // namespace

TEST(CurveWarnings, ACurveThatFallsIsFine) {
  EXPECT_TRUE(collect_warnings({80, 40, 12, 3}).empty());
  EXPECT_TRUE(collect_warnings({80, 40, 0}, 0.6).empty());
  EXPECT_TRUE(collect_warnings({0, 0}).empty());  // all are fooled already
}

// Five more images: McNemar 2 * 2^-5 = 0.0625; six: 0.031.
TEST(CurveWarnings, MoreRobustImagesAtALargerEpsilonAreFlagged) {
  EXPECT_TRUE(collect_warnings({80, 30, 35, 3}).empty());
  const auto found = collect_warnings({80, 30, 36, 3});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("more images are robust at epsilon 2 (36) than at 1 (30)"), 0u) << found[0];
}

TEST(CurveWarnings, ACurveThatDoesNotFallIsFlagged) {
  const auto found = collect_warnings({40, 38, 40});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("robust accuracy does not fall from epsilon 0 to last"), 0u);
}

TEST(CurveWarnings, A53_ALargeEpsilonMustFoolAlmostAll) {
  const auto found = collect_warnings({80, 20, 2}, 0.5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("2 of 100 images withstand epsilon last"), 0u);
  EXPECT_TRUE(collect_warnings({80, 20, 1}, 0.5).empty());         // 99 %
  EXPECT_TRUE(collect_warnings({80, 20, 2}, 0.49).empty());        // not large
  EXPECT_TRUE(collect_warnings({80, 20, 2}, 0.5, false).empty());  // without gradients: Square may need more queries
}

// What an image made grey is taken for need not be the target.
TEST(CurveWarnings, OfTargetedAttacksAreAboutTheSuccessRate) {
  const auto warnings = [](int64_t at_small, int64_t at_large) {
    return curve_warnings({make_attack("1/255", 0.004, at_small), make_attack("0.6", 0.6, at_large)}, 0.5, true);
  };
  EXPECT_TRUE(warnings(80, 20).empty());
  const auto found = warnings(40, 60);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].find("more images withstand epsilon 0.6 (60) than 1/255 (40)"), 0u) << found[0];
  EXPECT_EQ(found[1].find("the success rate does not rise from epsilon 1/255 to 0.6"), 0u) << found[1];
}

// Grey is half of the range away from every pixel, at most: of 12 values 0.5 * sqrt(12).
TEST(CurveWarnings, WhatIsLargeFollowsFromTheNorm) {
  EXPECT_EQ(large_epsilon(Norm::linf, 12), 0.5);
  EXPECT_NEAR(large_epsilon(Norm::l2, 12), 1.7320508, 1e-7);
}

}  // namespace sparsight::curve_warnings_test
