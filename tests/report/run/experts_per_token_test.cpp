#include "sparsight/report/run/experts_per_token.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::experts_per_token_test {

TEST(ExpertsPerToken, ForPeople) {
  EXPECT_EQ(experts_per_token_text({2.0, 2.0, {0, 0, 7}, {}}), "2.00");
  EXPECT_EQ(experts_per_token_text({1.5, 1.5, {0, 2, 2}, {}}), "1.50 (1: 50 %, 2: 50 %)");
  EXPECT_EQ(experts_per_token_text({2.0, 1.25, {0, 0, 4}, {1, 1, 2}}), "2.00, kept 1.25 (0: 25 %, 1: 25 %, 2: 50 %)");
  EXPECT_EQ(experts_per_token_text({}), "-");
  EXPECT_EQ(layer_experts_per_token(Json{{"experts_per_token", 0.5}, {"tokens_with", {1, 1}}}),
            "0.50 (0: 50 %, 1: 50 %)");
}

// Among 100 tokens with 9 different numbers the rarest is left out, the others stay in order.
TEST(ExpertsPerToken, OfManyNumbersTheMostFrequent) {
  EXPECT_EQ(experts_per_token_text({5, 5, {0, 12, 12, 12, 1, 12, 12, 12, 12, 15}, {}}),
            "5.00 (1: 12 %, 2: 12 %, 3: 12 %, 5: 12 %, 6: 12 %, 7: 12 %, 8: 12 %, 9: 15 %, ...)");
}

}  // namespace sparsight::experts_per_token_test
