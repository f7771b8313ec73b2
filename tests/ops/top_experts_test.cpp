#include "sparsight/ops/top_experts.h"

#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/ops/ref/top_experts.h"
#include "tests/support/random_tensor.h"

namespace sparsight::top_experts_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

void expect_chosen(const at::Tensor& scores, int64_t k, const at::Tensor& expected) {
  EXPECT_TRUE(torch::equal(top_experts(scores, k), expected)) << top_experts(scores, k);
  EXPECT_TRUE(torch::equal(ref::top_experts(scores, k), expected)) << ref::top_experts(scores, k);
}

}  // namespace

// A choice has no gradient.
TEST(TopExperts, S36_TiesGoToTheLowestIndexHereAndInTheReference) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    expect_chosen(torch::tensor({{1., 1., 0., 0.}}, type), 1, torch::tensor({{0}}, torch::kLong));
    expect_chosen(torch::tensor({{0., 2., 2., 2.}}, type), 2, torch::tensor({{1, 2}}, torch::kLong));
    expect_chosen(torch::tensor({{5., 5., 5.}}, type), 3, torch::tensor({{0, 1, 2}}, torch::kLong));
  }
}

TEST(TopExperts, NanRanksBehindEverything) {
  expect_chosen(torch::tensor({{kNan, -kInf, 1., kNan}}), 4, torch::tensor({{2, 1, 0, 3}}, torch::kLong));
  expect_chosen(torch::tensor({{kNan, kNan, kNan}}), 2, torch::tensor({{0, 1}}, torch::kLong));
  expect_chosen(torch::tensor({{-kInf, kInf, kNan}}), 2, torch::tensor({{1, 0}}, torch::kLong));
}

TEST(TopExperts, AgreesWithTheReference) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const int64_t experts : {1, 2, 7, 64})
      for (const int64_t k : {int64_t{1}, (experts + 1) / 2, experts}) {
        // Rounding to a few values makes ties frequent.
        at::Tensor scores = (test::random_tensor({3000, experts}, 1, type) * 2).round();
        scores.masked_fill_(scores == 3, kNan);
        EXPECT_TRUE(torch::equal(top_experts(scores, k), ref::top_experts(scores, k))) << experts << " " << k;
      }
}

TEST(TopExperts, AnEmptyPoolGivesNoRows) {
  EXPECT_EQ(top_experts(torch::empty({0, 4}), 2).sizes(), (std::vector<int64_t>{0, 2}));
}

}  // namespace sparsight::top_experts_test
