#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/composite.h"
#include "sparsight/data/sets/data_root.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::composite_test {
namespace {

using testing::cifar_record;
using testing::complaint;
using testing::grey_png;
using testing::says;
using testing::TemporaryFolder;
using testing::write_mnist;

DataSplits composite(const Json& settings) { return data_sets().make("composite", settings, "data", DataContext{}); }

}  // namespace

// write_mnist: image i has the value i in its last pixel and the label i mod 10, so every cell can be identified.
TEST(CompositeSet, P37_OneCellMakesTheLabelAndTheOthersTellNothing) {
  const TemporaryFolder folder;
  write_mnist(folder, 100);
  const DataSplits set = composite({{"root", folder.path()}, {"digits", {3, 7}}, {"train", 200}});
  EXPECT_EQ(set.train->info().classes, (std::vector<std::string>{"3", "7"}));
  EXPECT_EQ(set.train->info().super_classes, set.train->info().classes);
  EXPECT_EQ(set.train->info().super_class_of, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(set.train->info().cell_grid, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(set.train->info().height, 8);  // 4 cells of 2 x 3 pixels on a side
  EXPECT_EQ(set.train->info().width, 12);
  std::vector<int> positions(16), digits(10);
  for (int64_t i = 0; i < 200; ++i) {
    const Sample sample = set.train->get(i);
    EXPECT_EQ(sample.label, i % 2);
    const auto position = static_cast<int64_t>(sample.attributes.at(0));
    ++positions.at(static_cast<size_t>(position));
    for (int64_t cell = 0; cell < 16; ++cell) {
      const int64_t digit = sample.image[0][cell / 4 * 2 + 1][cell % 4 * 3 + 2].item<int64_t>() % 10;
      if (cell == position)
        EXPECT_EQ(digit, sample.label == 0 ? 3 : 7);
      else
        EXPECT_TRUE(digit != 3 && digit != 7);
      if (cell != position) ++digits.at(static_cast<size_t>(digit));
    }
  }
  for (const int count : positions) EXPECT_GT(count, 2);  // 12.5 expected at each of 16 positions
  for (const int digit : {0, 1, 2, 4, 5, 6, 8, 9}) EXPECT_NEAR(digits[static_cast<size_t>(digit)], 375, 75);
}

TEST(CompositeSet, P37_LargerSetsBeginWithSmallerOnesAndPartsDiffer) {
  const DataSplits small = composite({{"cells", "glyphs"}, {"train", 4}}),
                   large = composite({{"cells", "glyphs"}, {"train", 40}}),
                   other = composite({{"cells", "glyphs"}, {"train", 4}, {"seed", 1}});
  EXPECT_EQ(small.train->get(0).image.sizes(), at::IntArrayRef({1, 112, 112}));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(small.train->get(i).image.equal(large.train->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(small.test->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(small.validation->get(i).image));
    EXPECT_FALSE(small.train->get(i).image.equal(other.train->get(i).image));
  }
}

TEST(CompositeSet, IsMadeOfRealDigits) {
  if (!std::filesystem::exists(data_home() + "/mnist")) GTEST_SKIP() << "no mnist/ in SPARSIGHT_DATA";
  const DataSplits set = composite({});
  EXPECT_EQ(set.train->size(), 10000);
  EXPECT_EQ(set.test->size(), 1000);
  const Sample sample = set.test->get(999);
  EXPECT_EQ(sample.image.sizes(), at::IntArrayRef({1, 112, 112}));
  EXPECT_EQ(set.test->info().classes.at(static_cast<size_t>(sample.label)), "1");
}

// Three classes of one grey level each: a 10, b 20, c 30; images of 4 x 5 pixels, cells of 2 x 2. The label's class a
// or c is in the cell that the attribute names, b in the other three.
TEST(CompositeSet, TakesItsCellsFromFolders) {
  const TemporaryFolder folder;
  for (const auto& [name, level] : {std::pair{"a", 10}, {"b", 20}, {"c", 30}})
    for (const char* part : {"train", "val", "test"})
      folder.write(cat(part, "/", name, "/1.png"), grey_png(level + (*part == 't' && part[1] == 'e' ? 5 : 0)));
  const DataSplits set = composite({{"cells", "folder"},
                                    {"root", folder.path()},
                                    {"cell_side", 2},
                                    {"grid", 2},
                                    {"digits", {0, 2}},
                                    {"train", 20},
                                    {"test", 20}});
  EXPECT_EQ(set.train->info().classes, (std::vector<std::string>{"a", "c"}));
  for (const auto& [part, test] : {std::pair{set.train, 0}, {set.test, 5}, {set.validation, 0}})
    for (int64_t i = 0; i < 20; ++i) {
      const Sample sample = part->get(i);
      ASSERT_EQ(sample.image.sizes(), at::IntArrayRef({3, 4, 4}));  // as folder reads images: RGB
      const auto position = static_cast<int64_t>(sample.attributes.at(0));
      for (int64_t cell = 0; cell < 4; ++cell) {
        const int64_t level = (cell != position ? 20 : i % 2 == 0 ? 10 : 30) + test;
        EXPECT_TRUE(sample.image.narrow(1, cell / 2 * 2, 2).narrow(2, cell % 2 * 2, 2).eq(level).all().item<bool>());
      }
    }
}

// All ten digits are classes; the other cells are pictures of CIFAR-10, all of level 200 and of its classes 3 and 4.
TEST(CompositeSet, HasAllClassesWithDistractorsFromElsewhere) {
  const TemporaryFolder folder;
  write_mnist(folder, 100, "digits/");
  const std::string records = cifar_record(std::string(1, 3), 200) + cifar_record(std::string(1, 4), 200);
  for (const char* name : {"data_batch_1", "test_batch"}) folder.write(cat("cifar/", name, ".bin"), records);
  const Json others = {{"name", "cifar10"}, {"root", folder.path("cifar")}, {"validation", 0}};
  const DataSplits set = composite({{"root", folder.path("digits")},
                                    {"digits", Json::array()},
                                    {"distractors", Json::array({others})},
                                    {"cell_side", 8},
                                    {"grid", 2},
                                    {"train", 40}});
  EXPECT_EQ(set.train->info().classes.size(), 10u);
  EXPECT_EQ(set.train->info().classes[7], "7");
  for (int64_t i = 0; i < 40; ++i) {
    const Sample sample = set.train->get(i);
    ASSERT_EQ(sample.image.sizes(), at::IntArrayRef({1, 16, 16}));  // grey, as the digits
    EXPECT_EQ(sample.label, i % 10);
    for (int64_t cell = 0; cell < 4; ++cell) {
      const auto level = sample.image[0][cell / 2 * 8][cell % 2 * 8].item<int64_t>();
      EXPECT_EQ(level < 100 ? level % 10 : level, cell == static_cast<int64_t>(sample.attributes[0]) ? i % 10 : 200);
    }
  }
}

TEST(CompositeSet, MakesColoursGreyAndCellsOfOneSize) {
  const TemporaryFolder folder;
  std::string records;
  for (int k = 0; k < 10; ++k) {  // red alone
    records += static_cast<char>(k);
    records.append(1024, static_cast<char>(100 + k));
    records.append(2048, '\0');
  }
  for (const char* name : {"data_batch_1", "test_batch"}) folder.write(cat(name, ".bin"), records);
  const Json settings = {
      {"cells", "cifar10"}, {"root", folder.path()}, {"cell_settings", Json::array({{{"validation", 0}}})},
      {"cell_side", 28},    {"cell_channels", 1},    {"digits", {0, 9}}};
  const Sample sample = composite(settings).test->get(1);
  ASSERT_EQ(sample.image.sizes(), at::IntArrayRef({1, 112, 112}));
  const auto cell = static_cast<int64_t>(sample.attributes[0]);
  // 109 * 19595 / 65536 = 32.59
  EXPECT_EQ(sample.image[0][cell / 4 * 28 + 14][cell % 4 * 28 + 14].item<int64_t>(), 33);
}

// [1,2,4] to 2 x 2. Cropped: the middle columns. Stretched: the triangle filter of width 4 weighs the columns 3:3:1:0
// and 0:1:3:3, (3 * 0 + 3 * 70 + 140) / 7 = 50 and (70 + 3 * 140 + 3 * 210) / 7 = 160.
TEST(CellImage, CropsOrStretches) {
  const at::Tensor image = at::tensor({0, 70, 140, 210}, at::kByte).view({1, 1, 4}).expand({1, 2, 4});
  const auto expect = [&](const CellShape& shape, std::vector<int64_t> row) {
    const at::Tensor cell = cell_image(image, shape);
    ASSERT_EQ(cell.sizes(), at::IntArrayRef({shape.channels, 2, 2}));
    EXPECT_TRUE(cell.eq(at::tensor(row, at::kByte)).all().item<bool>()) << cell;
  };
  expect({1, 2, 2, "crop"}, {70, 140});
  expect({1, 2, 2, "stretch"}, {50, 160});
  expect({3, 2, 2, "crop"}, {70, 140});
}

// Drawn cells are kept, not drawn again; so are those made of files, which may then change.
TEST(CompositeSet, MakesEachCellOnce) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"})
    for (const char* part : {"train", "val", "test"}) folder.write(cat(part, "/", name, "/1.png"), grey_png(10));
  const DataSplits set = composite({{"cells", "folder"}, {"root", folder.path()}, {"cell_side", 4}, {"train", 8}});
  const at::Tensor first = set.train->get(0).image;  // at least one image of each class is needed for its 16 cells
  set.train->get(1);
  for (const char* name : {"a", "b", "c"}) folder.write(cat("train/", name, "/1.png"), "no image");
  for (int64_t i = 0; i < 8; ++i) EXPECT_TRUE(set.train->get(i).image.equal(first));
}

TEST(CompositeSet, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_mnist(folder, 9);  // no 9
  folder.write("photos/a/1.png", grey_png(1));
  const auto message = [&](Json settings) {
    if (!settings.contains("root")) settings["root"] = folder.path();
    return complaint([&] { composite(settings); });
  };
  EXPECT_TRUE(says(message({{"digits", {8, 9}}}), "the training split of mnist has no image of class 9 (9)"));
  EXPECT_TRUE(says(message({{"digits", {0, 1, 2, 3, 4, 5, 6, 7, 8}}}), "name data.distractors"));
  EXPECT_TRUE(says(message({{"digits", {1}}}), "must name 2 to 9 of the 10 classes of mnist, got 1"));
  EXPECT_TRUE(says(message({{"digits", Json::array()}}), "got 10; for all of them, name other data.distractors"));
  EXPECT_TRUE(says(message({{"digits", {1, 1}}}), "names a class twice"));
  EXPECT_TRUE(says(message({{"digits", {1, 12}}}), "names class 12, but mnist has the classes 0 to 9"));
  EXPECT_TRUE(says(message({{"cells", "mnst"}}), "did you mean \"mnist\""));
  EXPECT_TRUE(says(message({{"cells", "folder"},
                            {"root", folder.path("photos")},
                            {"cell_settings", Json::array({{{"validation", 0}}})}}),
                   "has no test split"));
  EXPECT_TRUE(says(message({{"cell_settings", Json::array({{{"variat", "kmnist"}}})}}),
                   "unknown setting data.cell_settings.variat; did you mean \"variant\""));
  EXPECT_TRUE(says(message({{"distractors", Json::array({{{"classes", 3}}})}}), "without the name of a dataset"));
  folder.write("photos/b/1.png", grey_png(1));
  folder.write("photos/b/2.png", grey_png(1));
  EXPECT_TRUE(says(message({{"cells", "folder"},
                            {"root", folder.path("photos")},
                            {"cell_settings", Json::array({{{"validation", 0.5}}})}}),
                   "vary in size; set data.cell_side"));
}

}  // namespace sparsight::composite_test
