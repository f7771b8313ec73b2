#include "sparsight/analysis/expert_usage.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/moe/finish_routing.h"
#include "tests/moe/robust_moe_example.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::expert_usage_test {
namespace {

void expect_same(const ExpertUsage& a, const ExpertUsage& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_NEAR(a.entropy, b.entropy, 1e-12);
  EXPECT_NEAR(a.token_entropy.value(), b.token_entropy.value(), 1e-12);
  EXPECT_NEAR(a.importance_cv2, b.importance_cv2, 1e-12);
  EXPECT_NEAR(a.load_cv2, b.load_cv2, 1e-12);
  EXPECT_NEAR(a.dropped, b.dropped, 1e-12);
}

}  // namespace

TEST(ExpertUsage, A39_ReproducesTheWorkedExample) {
  const ExpertUsage usage = expert_usage({test::routed_group(test::clean_group(), 6)});
  EXPECT_EQ(usage.count, (std::vector<int64_t>{6, 3, 3}));
  EXPECT_NEAR(usage.entropy, 1.039721, 1e-6);
  EXPECT_NEAR(usage.relative_entropy, 0.946395, 1e-6);
  EXPECT_NEAR(usage.token_entropy.value(), 0.871986, 1e-6);
  EXPECT_NEAR(usage.importance_cv2, 0.147811, 1e-6);
  EXPECT_NEAR(usage.load_cv2, 0.125, 1e-12);  // variance (4 + 1 + 1) / 3 over 4²
  EXPECT_EQ(usage.dropped, 0);
  // Two slots for each expert: 6 of the 12 choices are left.
  const ExpertUsage dropped = expert_usage({test::routed_group(test::clean_group(), 2)});
  EXPECT_EQ(dropped.count, usage.count);
  EXPECT_EQ(dropped.dropped, 0.5);
}

TEST(ExpertUsage, A39_BalancedAndCollapsedUse) {
  const at::Tensor balanced = torch::eye(4, torch::kDouble), one = torch::zeros({4, 4}, torch::kDouble);
  const auto usage = [](const at::Tensor& logits) {
    return expert_usage({route_softmax_topk(logits, {}, 0, 1, false)});
  };
  EXPECT_NEAR(usage(balanced).entropy, std::log(4), 1e-12);
  EXPECT_NEAR(usage(balanced).relative_entropy, 1, 1e-12);
  EXPECT_NEAR(usage(balanced).importance_cv2, 0, 1e-12);
  EXPECT_EQ(usage(one).entropy, 0);
  EXPECT_NEAR(usage(one).load_cv2, 3, 1e-12);
  EXPECT_NEAR(usage(one).token_entropy.value(), std::log(4), 1e-12);
}

TEST(ExpertUsage, A37_PaddingDoesNotCountAndBatchesAddUp) {
  const at::Tensor logits = test::random_tensor({12, 4}, 3);
  const auto routing = [&](int64_t first, int64_t count) {
    return route_softmax_topk(logits.narrow(0, first, count), {}, 0, 2, false);
  };
  Routing padded = routing(0, 12);
  drop_padding(padded, torch::arange(12) < 7);
  expect_same(expert_usage({padded}), expert_usage({routing(0, 7)}));
  expect_same(expert_usage({routing(0, 5), routing(5, 7)}), expert_usage({routing(0, 12)}));
}

TEST(ExpertUsage, RefusesLayersThatDoNotMatch) {
  const Routing three = test::routed_group(test::clean_group(), 6);
  const Routing four = route_softmax_topk(test::random_tensor({5, 4}, 1), {}, 0, 2, false);
  EXPECT_NE(testing::error_text([&] { expert_usage({three, four}); }).find("3 and 4 experts"), std::string::npos);
  EXPECT_NE(testing::error_text([] { expert_usage({}); }).find("got none"), std::string::npos);
}

}  // namespace sparsight::expert_usage_test
