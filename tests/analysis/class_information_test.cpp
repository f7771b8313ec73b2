#include "sparsight/analysis/class_information.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/core/random.h"

namespace sparsight::class_information_test {
namespace {

// I = sum p log2(p / (p_class p_expert)).
TEST(ClassInformation, BitsByHand) {
  // Each class has its own expert: two cells of 1/2, with log2((1/2) / (1/2 * 1/2)) = 1.
  EXPECT_DOUBLE_EQ(mutual_information_bits({3, 0, 0, 3}, 2, 2), 1);
  // Independent: each cell is the product of its sums.
  EXPECT_DOUBLE_EQ(mutual_information_bits({1, 2, 3, 6}, 2, 2), 0);
  // 1/2 (1, 0) and 1/2 (1/2, 1/2): cells 1/2, 1/4, 1/4; experts 3/4, 1/4:
  // 1/2 log2(4/3) + 1/4 log2(2/3) + 1/4 log2(2) = 0.311278
  EXPECT_NEAR(mutual_information_bits({2, 0, 1, 1}, 2, 2), 0.5 * std::log2(4. / 3) + 0.25 * std::log2(2. / 3) + 0.25,
              1e-12);
  EXPECT_EQ(mutual_information_bits({0, 0, 0, 0}, 2, 2), 0);
}

// An image with ten times the tokens counts as much as another: rows (1, 0) and ((1 + 0) / 2, (0 + 1) / 2).
TEST(ClassInformation, ImagesHaveTheSameWeight) {
  ImageExperts images;
  images.add(0, {40, 0});
  images.add(0, {4, 0});
  images.add(1, {10, 0});
  images.add(1, {0, 1});
  images.add(1, {0, 0});
  EXPECT_EQ(images.images(), 4) << "one has no assignments";
  EXPECT_EQ(images.table(images.labels(), 2, 2), (std::vector<double>{2, 0, 1, 1}));
  EXPECT_NEAR(class_information(images, 2, 2).bits, 0.311278, 1e-6);
}

TEST(ClassInformation, ShuffledClassesShowWhatIsChance) {
  ImageExperts separated, random;
  RandomStream stream(5, "test");
  for (int64_t i = 0; i < 40; ++i) {
    separated.add(i % 2, i % 2 == 0 ? std::vector<int64_t>{7, 0} : std::vector<int64_t>{0, 7});
    random.add(i % 2, stream.uniform() < 0.5 ? std::vector<int64_t>{7, 0} : std::vector<int64_t>{0, 7});
  }
  const ClassInformation known = class_information(separated, 2, 2), unknown = class_information(random, 2, 2);
  EXPECT_NEAR(known.bits, 1, 1e-12);
  EXPECT_EQ(known.maximum, 1);
  EXPECT_EQ(known.images, 40);
  // With (K - 1)(E - 1) = 1 degree of freedom, 2 n ln 2 I is about chi-square: mean 1 / (80 ln 2) = 0.018, deviation
  // 0.018 sqrt(2) = 0.026; of 20 permutations the mean lies within 0.018 +- 4 * 0.026 / sqrt(20).
  EXPECT_NEAR(known.shuffled, 0.018, 0.023);
  EXPECT_GT(known.shuffled, 0);
  EXPECT_GT(known.shuffled_deviation, 0);
  EXPECT_LT(unknown.bits, 0.1) << "4 times the deviation";
  EXPECT_EQ(class_information(separated, 2, 2).shuffled, known.shuffled) << "the same permutations each time";
}

// At most log2 of the classes that have images, and of the experts.
TEST(ClassInformation, TheMaximumIsOfClassesWithImagesOrOfExperts) {
  ImageExperts images;
  for (const int64_t label : {0, 3, 5, 7}) images.add(label, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(class_information(images, 9, 8).maximum, 2);
  EXPECT_EQ(class_information(images, 9, 8).bits, 0);
  ImageExperts two;
  for (int64_t label = 0; label < 4; ++label) two.add(label, {1, 0});
  EXPECT_EQ(class_information(two, 4, 2).maximum, 1);
}

}  // namespace
}  // namespace sparsight::class_information_test
