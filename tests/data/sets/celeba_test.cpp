// CelebA's loader on a folder in the official layout with synthetic images.
#include <gtest/gtest.h>

#include <map>

#include "sparsight/data/register_data.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::celeba_test {

using testing::complaint;
using testing::grey_png;
using testing::says;
using testing::TemporaryFolder;

// Image i: of part 0 (i < 40), 1 (< 56) or 2; smiling where i is odd; every third of four hair colours in turn is
// black, blond, both, neither; eyeglasses for the second half of each eight.
struct Face {
  int i;
  bool smiling() const { return i % 2 == 1; }
  bool black() const { return i / 2 % 4 == 0 || i / 2 % 4 == 2; }
  bool blond() const { return i / 2 % 4 == 1 || i / 2 % 4 == 2; }
  bool glasses() const { return i % 8 >= 4; }
  int part() const { return i < 40 ? 0 : i < 56 ? 1 : 2; }
  std::string name() const { return cat("0000", i < 10 ? "0" : "", i, ".jpg"); }
};
constexpr int kFaces = 72;

std::string attribute_list(int count = kFaces, int listed = kFaces) {
  std::string text = cat(count, "\nBald Black_Hair Blond_Hair Eyeglasses Smiling \n");
  const auto value = [](bool has) { return has ? "  1" : " -1"; };
  for (int i = 0; i < listed; ++i) {
    const Face face{i};
    text += cat(face.name(), " -1", value(face.black()), value(face.blond()), value(face.glasses()),
                value(face.smiling()), "\r\n");
  }
  return text;
}
std::string partition_list() {
  std::string text;
  for (int i = 0; i < kFaces; ++i) text += cat(Face{i}.name(), " ", Face{i}.part(), "\n");
  return text;
}

class CelebaSet : public ::testing::Test {
 protected:
  CelebaSet() {
    folder_.write("list_attr_celeba.txt", attribute_list());
    folder_.write("list_eval_partition.txt", partition_list());
    for (int i = 0; i < kFaces; ++i) folder_.write("img_align_celeba/" + Face{i}.name(), grey_png(i));
  }
  DataSplits set(Json settings = Json::object()) const {
    settings["root"] = folder_.path();
    return data_sets().make("celeba", settings, "data", DataContext{});
  }
  std::string message(const Json& settings = Json::object()) const {
    return complaint([&] { set(settings); });
  }
  static Face face(const DataSet& part, int64_t index) { return {part.get(index).image[0][0][0].item<int>()}; }

  TemporaryFolder folder_;
};

TEST_F(CelebaSet, P38_SmilingIsBalancedAndKeepsToTheOfficialParts) {
  const DataSplits parts = set();
  EXPECT_EQ(parts.train->info().classes, (std::vector<std::string>{"not smiling", "smiling"}));
  EXPECT_EQ(parts.train->size(), 40);
  EXPECT_EQ(parts.validation->size(), 16);
  EXPECT_EQ(parts.test->size(), 16);
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(face(*parts.test, i).part(), 2);
    EXPECT_EQ(parts.test->label(i), face(*parts.test, i).smiling());
  }
  const DataSplits few = set({{"train", 10}});
  EXPECT_EQ(few.train->size(), 10);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(face(*few.train, i).i, i);  // the first, nested in the larger set
}

// Each combination of smiling and exactly one hair colour has 5 of the 40 training images: with 0.75, six images are 2
// (6 * 0.375, rounded) of each frequent combination and 1 of each rare one.
TEST_F(CelebaSet, P38_HairGoesAlongWithSmilingInTrainingOnly) {
  const DataSplits parts = set({{"task", "spurious_hair"}, {"correlation", 0.75}, {"train", 6}});
  std::map<std::pair<int64_t, int64_t>, int> counts;
  for (int64_t i = 0; i < parts.train->size(); ++i) {
    const Face f = face(*parts.train, i);
    EXPECT_NE(f.black(), f.blond());
    EXPECT_EQ(parts.train->domain(i), f.blond());
    ++counts[{parts.train->label(i), parts.train->domain(i)}];
  }
  EXPECT_EQ((counts[{1, 0}]), 2);
  EXPECT_EQ((counts[{0, 1}]), 2);
  EXPECT_EQ((counts[{1, 1}]), 1);
  EXPECT_EQ((counts[{0, 0}]), 1);
  EXPECT_EQ(parts.test->size(), 8);  // 2 of each of four combinations
  EXPECT_EQ(parts.train->info().domains, (std::vector<std::string>{"black hair", "blond hair"}));
  EXPECT_TRUE(says(message({{"task", "spurious_hair"}, {"train", 20}}),
                   "training split has 5 images of \"not smiling\" with blond hair; 20 images need 10"));
}

// Each of the four combinations has 5 of 40 training images. 0.95 of half of 40 images would be 19: with at most 5 of
// them, 10 images (5 / 0.475 = 10.5), of which 4.75 and 0.25, rounded, are 5 and 0.
TEST_F(CelebaSet, P39_ShortCombinationsCapTheNumberOfImages) {
  const DataSplits parts = set({{"task", "spurious_hair"}, {"train", 40}, {"cells", "capped"}});
  EXPECT_EQ(parts.train->size(), 10);
  const DataSplits enough = set({{"task", "spurious_hair"}, {"train", 6}, {"cells", "capped"}});
  EXPECT_EQ(enough.train->size(), 6);
}

// Blocks of 4 images: smiling black, smiling blond, not smiling black, not smiling blond. With 0.75, 16 images are 6,
// 2, 2 and 6: the first slice is its block and 2 images of the next one, used twice; the last one ends after 4.
TEST_F(CelebaSet, P39_SlicesRunIntoTheNextBlockAsInThePapersCode) {
  const DataSplits parts =
      set({{"task", "spurious_hair"}, {"train", 16}, {"correlation", 0.75}, {"cells", "sliced"}, {"block", 4}});
  std::map<std::pair<int64_t, int64_t>, int> counts;
  for (int64_t i = 0; i < parts.train->size(); ++i) ++counts[{parts.train->label(i), parts.train->domain(i)}];
  EXPECT_EQ((counts[{1, 0}]), 4);
  EXPECT_EQ((counts[{1, 1}]), 2 + 2);
  EXPECT_EQ((counts[{0, 0}]), 2);
  EXPECT_EQ((counts[{0, 1}]), 4);
  EXPECT_TRUE(says(message({{"cells", "sliced"}}), "is for data.task = \"spurious_hair\""));
}

TEST_F(CelebaSet, P38_FourClassesOfSmilingAndEyeglasses) {
  const DataSplits parts = set({{"task", "smiling_glasses"}, {"test", 8}});
  EXPECT_EQ(parts.train->size(), 40);
  EXPECT_EQ(parts.test->size(), 8);
  for (int64_t i = 0; i < parts.train->size(); ++i) {
    const Face f = face(*parts.train, i);
    EXPECT_EQ(parts.train->label(i), f.glasses() ? (f.smiling() ? 1 : 0) : (f.smiling() ? 2 : 3));
  }
}

TEST_F(CelebaSet, ListsThatDoNotMatchAreErrors) {
  folder_.write("list_attr_celeba.txt", attribute_list(99));
  EXPECT_TRUE(says(message(), "says that it lists 99 images, but has 72"));
  folder_.write("list_attr_celeba.txt", attribute_list(70, 70));
  EXPECT_TRUE(
      says(message(), "list_eval_partition.txt:71: \"000070.jpg\" where list_attr_celeba.txt has no more images"));
  folder_.write("list_attr_celeba.txt", "2\nSmiling\na.jpg 1\nb.jpg 0\n");
  EXPECT_TRUE(says(message(), "list_attr_celeba.txt:4: values must be 1 or -1, got \"0\""));
  folder_.write("list_attr_celeba.txt", "1\nSmiling Bald\na.jpg 1\n");
  EXPECT_TRUE(says(message(), "list_attr_celeba.txt:3: expected the name of an image and 2 values, got 1"));
  folder_.write("list_attr_celeba.txt", "1\nSmiling\n../a.jpg 1\n");
  EXPECT_TRUE(says(message(), "\"../a.jpg\" is not the name of an image"));
  folder_.write("list_attr_celeba.txt", "1\nSmilin\na.jpg 1\n");
  folder_.write("list_eval_partition.txt", "a.jpg 0\n");
  EXPECT_TRUE(says(message(), "img_align_celeba has no a.jpg"));
  folder_.write("img_align_celeba/a.jpg", grey_png(1));
  EXPECT_TRUE(says(message(), "has no \"Smiling\"; did you mean \"Smilin\"? (known: Smilin)"));
  folder_.write("list_eval_partition.txt", "a.jpg 3\n");
  EXPECT_TRUE(says(message(), "list_eval_partition.txt:1: expected the name of an image and 0, 1 or 2"));
  folder_.write("list_attr_celeba.txt", "");
  EXPECT_TRUE(says(message(), "the first line must be the number of images"));
}

TEST(CelebaSetFiles, MissingOnesAreNamed) {
  const TemporaryFolder folder;
  folder.write("list_attr_celeba.txt", attribute_list());
  EXPECT_TRUE(
      says(complaint([&] {
             data_sets().make("celeba", {{"root", folder.path()}}, "data", DataContext{});
           }),
           "has no img_align_celeba; CelebA is img_align_celeba/ with the aligned images, list_attr_celeba.txt and"));
}

}  // namespace sparsight::celeba_test
