#include "sparsight/core/nearest_name.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::nearest_name_test {

TEST(NearestName, FindsTheSmallestEditDistance) {
  const std::vector<std::string> names{"epochs", "batch_size", "seed"};
  EXPECT_EQ(nearest_name("epoch", names), "epochs");           // one insertion
  EXPECT_EQ(nearest_name("bacth_size", names), "batch_size");  // a swap counts as two substitutions
  EXPECT_EQ(nearest_name("sead", names), "seed");
}

TEST(NearestName, TheFirstOfEqualsWins) { EXPECT_EQ(nearest_name("c", {"a", "b"}), "a"); }

TEST(NearestName, EmptyInputs) {
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("", {"abc", "d"}), "d");
}

TEST(PositionOf, FindsANameOrSaysWhichThereAre) {
  const std::vector<std::string> names{"gelu", "relu"};
  EXPECT_EQ(position_of("relu", names, "activation"), 1u);
  EXPECT_EQ(testing::message_of([&] { position_of("rely", names, "activation"); }),
            "unknown activation \"rely\" (known: gelu, relu)");
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a", "b"}, "|"), "a|b");
  EXPECT_EQ(join({}), "");
}

}  // namespace sparsight::nearest_name_test
