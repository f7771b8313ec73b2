#include "sparsight/eval/compare_records.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/report/run/comparison_text.h"
#include "tests/eval/record_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::compare_records_test {
namespace {

// Images of class 0 of two; a and b say for each whether the model is right.
test::RecordedImages make_records(const std::vector<bool>& right) {
  test::RecordedImages images;
  images.ids.clear();
  images.predictions.clear();
  for (size_t i = 0; i < right.size(); ++i) {
    images.ids.push_back("test/" + std::to_string(i));
    images.predictions.push_back(right[i] ? 0 : 1);
  }
  images.labels.assign(right.size(), 0);
  return images;
}

class CompareRecords : public ::testing::Test {
 protected:
  Json compare(const test::RecordedImages& a, const test::RecordedImages& b) {
    test::write_records(folder_.path("a"), a);
    test::write_records(folder_.path("b"), b);
    return compare_records(read_records(folder_.path("a")), read_records(folder_.path("b")));
  }
  std::string error(const test::RecordedImages& a, const test::RecordedImages& b) {
    const std::string message = testing::error_text([&] { compare(a, b); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  testing::TemporaryFolder folder_;
};

// Both right on 4, only A on 10, only B on 2, none on 4: of 20.
std::pair<test::RecordedImages, test::RecordedImages> twenty() {
  std::vector<bool> a(20, false), b(20, false);
  for (size_t i = 0; i < 14; ++i) a[i] = true;
  for (size_t i = 10; i < 16; ++i) b[i] = true;
  return {make_records(a), make_records(b)};
}

}  // namespace

TEST_F(CompareRecords, CountsAndTestsTheImagesOnWhichOneIsRight) {
  const auto [a, b] = twenty();
  const Json result = compare(a, b);
  EXPECT_EQ(result["images"], 20);
  EXPECT_EQ(result["both"], 4);
  EXPECT_EQ(result["only_a"], 10);
  EXPECT_EQ(result["only_b"], 2);
  EXPECT_EQ(result["neither"], 4);
  EXPECT_EQ(result["a"]["correct"], 14);
  EXPECT_DOUBLE_EQ(result["a"]["accuracy"], 0.7);
  EXPECT_DOUBLE_EQ(result["b"]["accuracy"], 0.3);
  EXPECT_DOUBLE_EQ(result["mcnemar"]["p_value"], 158.0 / 4096);
  EXPECT_EQ(result["mcnemar"]["exact"], true);
  EXPECT_TRUE(result["mcnemar"]["statistic"].is_null());
  // Differences: 10 times 1, twice -1, 8 times 0. Mean 0.4, squares 12 - 20 x 0.16 = 8.8 over 19, error sqrt(8.8 / 380)
  // = 0.152177; 19 degrees of freedom: t 2.093024, so 0.4 -+ 0.318511.
  EXPECT_NEAR(result["difference"]["mean"], 0.4, 1e-12);
  EXPECT_NEAR(result["difference"]["standard_error"], 0.152177, 1e-6);
  EXPECT_NEAR(result["difference"]["interval"][0], 0.081489, 1e-6);
  EXPECT_NEAR(result["difference"]["interval"][1], 0.718511, 1e-6);
  EXPECT_EQ(result["notes"], Json::array());
  const std::string text = comparison_text(result);
  for (const char* part :
       {"glyphs, test, 20 images\n", "correct: both 4, only A 10, only B 2, neither 4\n",
        "A - B: 40.00 points (95 % CI: 8.15 to 71.85)\n", "McNemar: p = 0.0386 (exact binomial test)\n",
        "  A  70.00 % (95 % CI: 48.10 to 85.45)  14 of 20"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(CompareRecords, OfManyImagesItIsChiSquare) {
  std::vector<bool> a(236, false), b(236, true);
  for (size_t i = 0; i < 150; ++i) {
    a[i] = true;
    b[i] = false;
  }
  const std::string text = comparison_text(compare(make_records(a), make_records(b)));  // numbers: statistics_test.cpp
  EXPECT_NE(text.find("McNemar: p = 4.1e-05 (chi-square 16.82 with continuity correction)\n"), std::string::npos)
      << text;
}

// Right before the attack: images 0 to 2; after it: 1 and 3. Only image 1 is robust; image 3 was made right.
TEST_F(CompareRecords, AnAttackIsComparedByItsRobustAccuracy) {
  folder_.write("attack.json", "{}");
  test::write_records(folder_.path("clean_records"), make_records({true, true, true, false}));
  test::write_records(folder_.path("records"), make_records({false, true, false, true}));
  const Records robust = read_compared(folder_.path("")), raw = read_compared(folder_.path("records"));
  const Json result = compare_records(robust, raw);
  EXPECT_EQ(result["a"]["correct"], 1);
  EXPECT_EQ(result["a"]["robust"], true);
  EXPECT_EQ(result["b"]["correct"], 2);
  EXPECT_EQ(result["b"]["robust"], false);
  EXPECT_NE(result["notes"].dump().find("A: robust accuracy, of images that are right before and after"),
            std::string::npos)
      << result["notes"];
}

TEST_F(CompareRecords, OneImageHasNoInterval) {
  const Json result = compare(make_records({true}), make_records({false}));
  EXPECT_TRUE(result["difference"].is_null());
  EXPECT_EQ(result["mcnemar"]["p_value"], 1);
  EXPECT_EQ(comparison_text(result).find("A - B"), std::string::npos);
}

TEST_F(CompareRecords, OtherImagesAreRefused) {
  const auto [a, b] = twenty();
  test::RecordedImages other = b;
  other.ids[3] = "val/3";
  EXPECT_NE(error(a, other).find("are of different images: image 3 is test/3 and val/3; evaluate both"),
            std::string::npos);
  EXPECT_NE(error(a, make_records({true})).find("are of 20 and 1 images"), std::string::npos);
  other = b;
  other.labels[5] = 1;
  EXPECT_NE(error(a, other).find("give the image test/5 different classes: a and b"), std::string::npos);
  other = b;
  other.classes = {"a", "b", "d"};
  EXPECT_NE(error(a, other).find("have different classes"), std::string::npos);
  other = b;
  other.data = "mnist";
  EXPECT_NE(error(a, other).find("are of different datasets: glyphs and mnist"), std::string::npos);
}

TEST_F(CompareRecords, OtherSettingsOfTheDataAreSaid) {
  const auto [a, b] = twenty();
  test::RecordedImages other = b;
  other.settings["data"]["seed"] = 2;
  other.settings["data"]["root"] = "/there";
  const Json result = compare(a, other);
  ASSERT_EQ(result["notes"].size(), 1u);
  EXPECT_NE(comparison_text(result).find("note: data.seed differs (1, 2): the images may not be the same"),
            std::string::npos);
}

}  // namespace sparsight::compare_records_test
