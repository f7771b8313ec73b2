#include "sparsight/analysis/superclasses/published_division.h"

#include <gtest/gtest.h>

namespace sparsight::published_division_test {
namespace {

// Two rows of the published table as ImageNet's list spells them, and a class of none.
const std::vector<std::string> kClasses = {"boxer",      "pug, pug-dog",
                                           "Rottweiler", "giant_panda",
                                           "weasel",     "orangutan, orang, orangutang, Pongo pygmaeus",
                                           "toaster",    "cab, hack, taxi, taxicab"};

TEST(PublishedDivision, M46_CountsTheRowsThatAreWhole) {
  const auto both = published_rows(kClasses, {0, 0, 0, 1, 1, 1, 2, 2});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->rows, 2) << "of the row with the taxi two classes are missing";
  EXPECT_EQ(both->together, 2);
  EXPECT_EQ(published_rows(kClasses, {0, 0, 0, 1, 1, 2, 2, 2})->together, 1);
  EXPECT_EQ(published_rows(kClasses, {0, 1, 0, 1, 1, 2, 2, 2})->together, 0);
}

TEST(PublishedDivision, SaysNothingAboutOtherData) {
  EXPECT_FALSE(published_rows({"cat", "dog", "banana"}, {0, 1, 1}));
}

}  // namespace
}  // namespace sparsight::published_division_test
