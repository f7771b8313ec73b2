#include "sparsight/core/nearest_name.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::nearest_name_test {

TEST(NearestName, FindsTheSmallestEditDistance) {
  const std::vector<std::string> names{"epochs", "batch_size", "seed"};
  EXPECT_EQ(nearest_name("epoch", names), "epochs");           // one insertion
  EXPECT_EQ(nearest_name("bacth_size", names), "batch_size");  // a swap
  EXPECT_EQ(nearest_name("sead", names), "seed");
}

TEST(NearestName, SuggestsNothingBeyondAThirdOfTheLength) {
  EXPECT_EQ(nearest_name("lr", {"keep", "epochs"}), "");
  EXPECT_EQ(nearest_name("batch_size", {"epochs"}), "");
  EXPECT_EQ(nearest_name("trian", {"train"}), "train");      // one swap
  EXPECT_EQ(nearest_name("tiran", {"trial"}), "");           // two edits of five characters
  EXPECT_EQ(nearest_name("cifar", {"cifar10"}), "cifar10");  // two of seven
}

TEST(NearestName, OneThatGoesOnWhereTheOtherEnds) {
  EXPECT_EQ(nearest_name("batch_size", {"epochs", "batch"}), "batch");
  EXPECT_EQ(nearest_name("weight", {"weight_decay"}), "weight_decay");
  EXPECT_EQ(nearest_name("batches_of_many", {"batch"}), "");
}

// The edit distance of the two would take 10^12 steps.
TEST(NearestName, LongNamesAreNotCompared) {
  const std::string megabyte(1'000'000, 'x');
  EXPECT_EQ(nearest_name(megabyte, std::vector<std::string>(10, megabyte + "y")), "");
  EXPECT_EQ(nearest_name(megabyte, {megabyte + "_y"}), megabyte + "_y");
  EXPECT_EQ(nearest_name(std::string(128, 'x'), {std::string(127, 'x')}), std::string(127, 'x'));
}

TEST(NearestName, TheFirstOfEqualsWins) { EXPECT_EQ(nearest_name("c", {"a", "b"}), "a"); }

TEST(NearestName, EmptyInputs) {
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("", {"abc", "d"}), "d");
}

TEST(FindPosition, FindsANameOrSaysWhichThereAre) {
  const std::vector<std::string> names{"gelu", "relu"};
  EXPECT_EQ(find_position("relu", names, "activation"), 1u);
  EXPECT_EQ(testing::error_text([&] { find_position("rely", names, "activation"); }),
            "unknown activation \"rely\"; did you mean \"relu\"? (known: gelu, relu)");
  EXPECT_EQ(testing::error_text([&] { find_position("tanh\xff", names, "activation"); }),
            "unknown activation \"tanh\\xff\" (known: gelu, relu)");
}

TEST(EntryNamed, FindsTheEntry) {
  struct Named {
    std::string name;
    int value;
  };
  const std::vector<Named> entries{{"one", 1}, {"two", 2}};
  EXPECT_EQ(entry_named("two", entries, "number").value, 2);
  EXPECT_EQ(testing::error_text([&] { entry_named("tow", entries, "number"); }),
            "unknown number \"tow\"; did you mean \"two\"? (known: one, two)");
}

TEST(Suggestion, LeavesTheQuestionOutWhereNothingIsNear) {
  EXPECT_EQ(suggestion("sead", {"seed", "threads"}), "; did you mean \"seed\"? (known: seed, threads)");
  EXPECT_EQ(suggestion("lr", {"keep"}), " (known: keep)");
  EXPECT_EQ(did_you_mean(""), "");
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a", "b"}, "|"), "a|b");
  EXPECT_EQ(join({}), "");
}

}  // namespace sparsight::nearest_name_test
