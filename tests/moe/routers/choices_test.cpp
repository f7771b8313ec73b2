#include "sparsight/moe/routers/choices.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight::choices_test {
namespace {

std::string complaint(const std::string& router, int64_t k) {
  try {
    routers().make(router, {{"k", k}}, "router", RouterShape{8, 4});
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

// Changing router.name alone, in a configuration that says k.
TEST(FixedChoice, TheNumberThatTheMethodSaysIsAcceptedAndAnotherOneIsExplained) {
  EXPECT_EQ(complaint("switch_top1", 1), "");
  EXPECT_EQ(complaint("gshard_top2", 2), "");
  EXPECT_EQ(complaint("base", 1), "");
  EXPECT_EQ(complaint("dense_softmax", 4), "");
  EXPECT_EQ(complaint("switch_top1", 2),
            "[router] k = 2, but switch_top1 always chooses 1 expert per token; remove router.k");
  EXPECT_EQ(complaint("gshard_top2", 1),
            "[router] k = 1, but gshard_top2 always chooses 2 experts per token; remove router.k");
  EXPECT_EQ(complaint("base", 3), "[router] k = 3, but base always chooses 1 expert per token; remove router.k");
  EXPECT_EQ(complaint("dense_softmax", 2),
            "[router] k = 2, but dense_softmax always chooses all 4 experts; remove router.k");
}

TEST(ChoiceOptions, MoreChoicesThanExpertsAreExplained) {
  for (const std::string router : {"softmax_topk", "noisy_topk", "cosine", "sigmoid_bias", "hash", "random",
                                   "round_robin", "per_image", "sinkhorn"})
    EXPECT_EQ(complaint(router, 5),
              "[router] chooses 5 experts per token but [moe] experts is 4; lower k or add experts")
        << router;
}

}  // namespace sparsight::choices_test
