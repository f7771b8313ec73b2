#include "sparsight/moe/routers/switch_top1.h"

#include <gtest/gtest.h>

#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::switch_top1_test {

TEST(SwitchTop1, TheGateIsTheProbabilityOfTheBestExpert) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Routing r = route_switch_top1(test::example_logits().to(type));
    EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 2, 1}, torch::kLong)));
    // softmax of the clean logits, as in the worked example of V-MoE
    EXPECT_TRUE(test::near(r.gate, torch::tensor({0.494362, 0.677632, 0.500606}, torch::kDouble),
                           test::example_tolerance(type)));
    EXPECT_EQ(r.gate.scalar_type(), type);
  }
}

TEST(SwitchTop1, JitterScalesEachElement) {
  const at::Tensor x = torch::tensor({{2., -4.}}, torch::kDouble);
  const at::Tensor u = torch::tensor({{0., 0.75}}, torch::kDouble);
  // 2 * 0.99, -4 * (0.99 + 0.015)
  EXPECT_TRUE(test::near(jitter_tokens(x, u, 0.01), torch::tensor({{1.98, -4.02}}, torch::kDouble), 1e-12));
}

TEST(SwitchTop1, JitterIsForTrainingOnlyAndKeyedByTokens) {
  SwitchTop1Router router({}, {5, 3});
  initialize(router, 1);
  const at::Tensor x = test::random_tensor({40, 5}, 2, torch::kFloat);
  const Routing whole = router.route(test::token_batch(x)), next = router.route(test::token_batch(x, 1));
  EXPECT_FALSE(torch::equal(whole.clean_logits, next.clean_logits));
  const RouterInput part = test::token_batch_of_images(x.slice(0, 13), 13);
  EXPECT_TRUE(torch::allclose(router.route(part).clean_logits, whole.clean_logits.slice(0, 13), 0, 1e-6));
  const Routing quiet = router.route(test::evaluated(test::token_batch(x)));
  EXPECT_TRUE(torch::equal(quiet.clean_logits, router.route(test::evaluated(test::token_batch(x, 1))).clean_logits));
  // Jitter of 1 % changes a logit by at most 1 % of the sum of its terms.
  const at::Tensor bound = 0.01 * x.abs().matmul(router.weight.abs().t()) + 1e-6;
  EXPECT_TRUE(((whole.clean_logits - quiet.clean_logits).abs() <= bound).all().item<bool>());
}

}  // namespace sparsight::switch_top1_test
