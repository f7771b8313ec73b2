#include "sparsight/cost/cost.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::cost_test {
namespace {

constexpr Cost kLayer{
    .multiply_adds = 6, .elementwise = 3, .parameters = 8, .active_parameters = 7, .weight_bytes = 32};

}  // namespace

TEST(Cost, UnitsShareParametersAndCopiesDoNot) {
  const Cost tokens = on_units(kLayer, 5), layers = copies(kLayer, 5);
  EXPECT_EQ(tokens.multiply_adds, 30);
  EXPECT_EQ(tokens.elementwise, 15);
  EXPECT_EQ(tokens.parameters, 8);
  EXPECT_EQ(tokens.active_parameters, 7);
  EXPECT_EQ(tokens.weight_bytes, 32);
  EXPECT_EQ(layers.multiply_adds, 30);
  EXPECT_EQ(layers.parameters, 40);
  EXPECT_EQ(layers.active_parameters, 35);
  EXPECT_EQ(layers.weight_bytes, 160);
}

TEST(Cost, MeansAreRoundedAndWholeNumbersExact) {
  EXPECT_EQ(on_average(kLayer, 2.5).multiply_adds, 15);
  EXPECT_EQ(on_average(kLayer, 2.5).elementwise, 8);  // 7.5
  const int64_t odd = (int64_t{1} << 60) + 1;         // no double
  EXPECT_EQ(on_average({.multiply_adds = odd}, 3).multiply_adds, 3 * odd);
}

TEST(Cost, ASumIsAssumedWhereAPartIs) {
  Cost assumed;
  assumed.assumed = true;
  EXPECT_TRUE((kLayer + assumed).assumed);
  EXPECT_TRUE(on_units(assumed, 2).assumed);
  EXPECT_FALSE((kLayer + kLayer).assumed);
}

TEST(Cost, WhatDoesNotFitIsAnError) {
  const Cost large{.multiply_adds = std::numeric_limits<int64_t>::max() / 2 + 1};
  const std::string error =
      "the cost of this model does not fit 64 bits; make its images, layers or experts smaller or fewer";
  EXPECT_EQ(testing::error_text<Error>([&] { (void)(large + large); }), error);
  EXPECT_EQ(testing::error_text<Error>([&] { (void)on_units(large, 2); }), error);
  EXPECT_EQ(testing::error_text<Error>([&] { (void)on_average(large, 2.0); }), error);
  EXPECT_EQ(testing::error_text<Error>([&] { (void)on_average(large, 1e300); }), error);
  EXPECT_EQ(testing::error_text<Error>([&] { (void)copies(large, 3); }), error);
}

}  // namespace sparsight::cost_test
