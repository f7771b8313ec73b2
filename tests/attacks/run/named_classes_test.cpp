// Classes by name and by number.
#include <gtest/gtest.h>

#include "sparsight/attacks/run/named_classes.h"
#include "tests/support/errors.h"

namespace sparsight::named_classes_test {
namespace {

const std::vector<std::string> kAnimals{"cat", "dog", "crane, bird"};

std::string refusal(const std::string& list, const std::vector<std::string>& classes = kAnimals) {
  return testing::error_text<UsageError>([&] { class_numbers(list, classes, "--only-classes"); });
}

}  // namespace

TEST(NamedClasses, NamesComeBeforeNumbers) {
  EXPECT_EQ(class_number("dog", kAnimals), 1);
  EXPECT_EQ(class_number("2", kAnimals), 2);
  EXPECT_EQ(class_number("crane, bird", kAnimals), 2);
  EXPECT_EQ(class_number("1", {"1", "0"}), 0);  // the name, not the number
  EXPECT_EQ(class_numbers("2,cat", kAnimals, ""), (std::vector<int64_t>{2, 0}));
}

TEST(NamedClasses, OthersAreRefused) {
  EXPECT_EQ(refusal("cat,dgo"),
            "unknown class \"dgo\"; did you mean \"dog\"? (the 3 classes are cat to crane, bird, or 0 to 2)");
  EXPECT_EQ(refusal("3"), "there is no class 3: the numbers of the 3 classes are 0 to 2");
  EXPECT_EQ(refusal("-1"), "there is no class -1: the numbers of the 3 classes are 0 to 2");
  EXPECT_EQ(refusal("cat,,dog"), "--only-classes has an empty entry in \"cat,,dog\"; give it as cat,dog or 3,5");
  for (const char* list : {"", ",", "cat,", ",cat"})
    EXPECT_NE(refusal(list).find("has an empty entry"), std::string::npos) << list;
  EXPECT_EQ(refusal("cat,dog,0"), "the class 0 is named twice; give each once");
  for (const char* list : {"1.5", "0x1", " 1", "nan", "99999999999999999999", "\x1b[2J", "crane, bird"})
    EXPECT_EQ(refusal(list).find("unknown class \""), 0u) << list;
  EXPECT_EQ(refusal("\x1b[2J").find('\x1b'), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, 'x')), "");
}

}  // namespace sparsight::named_classes_test
