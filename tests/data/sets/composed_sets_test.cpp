// The datasets composed of small images: CIFAR-10 with noise, CIFAR-Vehicles, planted glyphs.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <map>
#include <set>

#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/class_pictures.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::composed_sets_test {

using testing::cifar_record;
using testing::complaint;
using testing::says;
using testing::TemporaryFolder;

DataSplits make_set(const std::string& name, const Json& settings) {
  return data_sets().make(name, settings, "data", DataContext{});
}

// Three images of each class in training and two in the test split; all pixels of image j of class c are 10 j + c, in
// the test split 100 more.
void write_cifar(const TemporaryFolder& folder) {
  std::string train, test;
  for (int j = 0; j < 3; ++j)
    for (int label = 0; label < 10; ++label) {
      train += cifar_record({static_cast<char>(label)}, 10 * j + label);
      if (j < 2) test += cifar_record({static_cast<char>(label)}, 100 + 10 * j + label);
    }
  folder.write("cifar/data_batch_1.bin", train);
  folder.write("cifar/test_batch.bin", test);
}

// Ten backgrounds of the levels 200 to 209, in folders.
void write_backgrounds(const TemporaryFolder& folder) {
  for (int i = 0; i < 10; ++i)
    folder.write(cat("plants/", i % 3, "/", i, ".png"), encode_png(at::full({3, 40, 50}, 200 + i, at::kByte)));
}

TEST(Halved, TakesTheMeanOfEachFourPixels) {
  const at::Tensor image = at::arange(16, at::kByte).reshape({1, 4, 4});
  // (0 + 1 + 4 + 5) / 4 = 2.5, halves up
  EXPECT_TRUE(halved(image).equal(at::tensor(std::vector<int>{3, 5, 11, 13}, at::kByte).reshape({1, 2, 2})));
}

TEST(CifarNoiseSet, P41_PastesAPictureSomewhereOnABackgroundOfItsOwnPart) {
  const TemporaryFolder folder;
  write_cifar(folder);
  write_backgrounds(folder);
  const DataSplits set = make_set(
      "cifar_noise", {{"root", folder.path() + "/cifar"}, {"backgrounds", folder.path() + "/plants"}, {"seed", 3}});
  EXPECT_EQ(set.train->size(), 30);
  EXPECT_EQ(set.test->size(), 20);
  EXPECT_EQ(set.train->info().classes[3], "cat");
  std::set<int64_t> backgrounds[2], rows;
  for (const bool test : {false, true}) {
    const DataSet& part = test ? *set.test : *set.train;
    for (int64_t i = 0; i < part.size(); ++i) {
      const Sample sample = part.get(i);
      ASSERT_EQ(sample.image.sizes(), at::IntArrayRef({3, 32, 32}));
      EXPECT_EQ(sample.label, i % 10);
      const auto row = static_cast<int64_t>(sample.attributes[0]), column = static_cast<int64_t>(sample.attributes[1]);
      EXPECT_TRUE(row >= 0 && row <= 16 && column >= 0 && column <= 16);
      rows.insert(row);
      at::Tensor rest = sample.image.clone();
      at::Tensor pasted = rest.narrow(1, row, 16).narrow(2, column, 16);
      EXPECT_TRUE(pasted.eq((test ? 100 : 0) + i).all().item<bool>());  // 10 (i / 10) + i % 10
      const int64_t level = sample.image.max().item<int64_t>();
      pasted.fill_(level);
      EXPECT_TRUE(rest.eq(level).all().item<bool>());
      backgrounds[test].insert(level);
    }
  }
  EXPECT_GT(rows.size(), 10u);
  EXPECT_EQ(backgrounds[1].size(), 2u);  // every fifth of ten
  EXPECT_GE(backgrounds[0].size(), 6u);
  for (const int64_t level : backgrounds[1]) EXPECT_FALSE(backgrounds[0].contains(level));
}

TEST(CifarVehiclesSet, P42_AVehicleAmongThreeAnimals) {
  const TemporaryFolder folder;
  write_cifar(folder);
  const DataSplits set = make_set("cifar_vehicles", {{"root", folder.path() + "/cifar"}});
  EXPECT_EQ(set.train->size(), 12);
  EXPECT_EQ(set.test->size(), 8);
  EXPECT_EQ(set.train->info().classes, (std::vector<std::string>{"airplane", "automobile", "ship", "truck"}));
  const std::vector<int64_t> vehicles{0, 1, 8, 9};
  std::set<int64_t> quadrants;
  for (int64_t i = 0; i < set.test->size(); ++i) {
    const Sample sample = set.test->get(i);
    EXPECT_EQ(sample.label, i % 4);
    const auto quadrant = static_cast<int64_t>(sample.attributes[0]);
    quadrants.insert(quadrant);
    for (int64_t cell = 0; cell < 4; ++cell) {
      const at::Tensor shown = sample.image.narrow(1, cell / 2 * 16, 16).narrow(2, cell % 2 * 16, 16);
      const int64_t level = shown[0][0][0].item<int64_t>() - 100;  // of the test split
      EXPECT_TRUE(shown.eq(level + 100).all().item<bool>());
      if (cell == quadrant)
        EXPECT_EQ(level, 10 * (i / 4) + vehicles[static_cast<size_t>(i % 4)]);
      else
        EXPECT_TRUE(level % 10 >= 2 && level % 10 <= 7) << level;
    }
  }
  EXPECT_GE(quadrants.size(), 3u);
}

TEST(PlantedSet, P43_PaperGoesAlongWithTheLabelInTrainingAsOftenAsAsked) {
  const DataSplits set = make_set("planted", {{"correlation", 0.95}, {"train", 400}, {"test", 40}});
  std::map<std::pair<int64_t, int64_t>, int> counts, tests;
  for (int64_t i = 0; i < 400; ++i) ++counts[{set.train->label(i), set.train->domain(i)}];
  for (int64_t i = 0; i < 40; ++i) ++tests[{set.test->label(i), set.test->domain(i)}];
  EXPECT_EQ((counts[{0, 0}]), 190);  // 0.475 of 400
  EXPECT_EQ((counts[{0, 1}]), 10);
  EXPECT_EQ((counts[{1, 0}]), 10);
  EXPECT_EQ((counts[{1, 1}]), 190);
  for (const auto& [cell, count] : tests) EXPECT_EQ(count, 10) << cell.first << " " << cell.second;
  const Sample dark = set.train->get(0), bright = set.train->get(1);
  EXPECT_EQ(dark.image.sizes(), at::IntArrayRef({3, 64, 64}));
  EXPECT_LT(dark.image.to(at::kFloat).mean().item<double>(), bright.image.to(at::kFloat).mean().item<double>());
}

TEST(ComposedSets, P43_SyntheticSubstitutesNeedNoFilesSaySoAndAreDeterministic) {
  for (const char* name : {"cifar_noise", "cifar_vehicles", "planted"}) {
    Json settings{{"train", 20}, {"test", 20}};
    if (std::string(name) != "planted") settings["source"] = "glyphs";
    const DataSplits small = make_set(name, settings), again = make_set(name, settings);
    settings["train"] = 40;
    const DataSplits large = make_set(name, settings);
    settings["seed"] = 1;
    const DataSplits other = make_set(name, settings);
    EXPECT_TRUE(says(small.train->info().name, "synthetic substitute")) << name;
    for (int64_t i = 0; i < 20; ++i) {
      const at::Tensor image = small.train->get(i).image;
      EXPECT_TRUE(image.equal(again.train->get(i).image)) << name;
      EXPECT_TRUE(image.equal(large.train->get(i).image)) << name;
      EXPECT_FALSE(image.equal(other.train->get(i).image)) << name;
      EXPECT_FALSE(image.equal(small.test->get(i).image)) << name;
    }
  }
}

TEST(ComposedSets, P44_SayWhatIsMissing) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& name, const Json& settings) {
    return complaint([&] { make_set(name, settings); });
  };
  EXPECT_TRUE(says(message("cifar_vehicles", {{"root", folder.path()}}), "has no data_batch_1.bin"));
  EXPECT_TRUE(says(message("cifar_vehicles", {{"root", folder.path() + "/none"}}), "(--set data.root=PATH)"));
  EXPECT_TRUE(says(message("cifar_noise", {{"root", folder.path()}}), "data.backgrounds is empty"));
  write_cifar(folder);
  folder.write("one/a.png", testing::grey_png(1));
  const std::string root = folder.path() + "/cifar";
  EXPECT_TRUE(says(message("cifar_noise", {{"root", root}, {"backgrounds", folder.path() + "/one"}}),
                   "has 1 images; at least 2"));
  EXPECT_TRUE(says(message("cifar_noise", {{"root", root}, {"backgrounds", folder.path() + "/two"}}), "there is no"));
  EXPECT_TRUE(says(message("cifar_vehicles", {{"root", root}, {"train", 16}}), "at most 12"));
  EXPECT_TRUE(says(message("planted", {{"side", 30}}), "choose a multiple"));
}

// P40: the first N / 10 of each class, for any N.
TEST(Cifar10Limits, P40_SubsetsAreBalancedAndNested) {
  const TemporaryFolder folder;
  write_cifar(folder);
  const auto ids = [&](int64_t limit) {
    const DataSplits set =
        make_set("cifar10", {{"root", folder.path() + "/cifar"}, {"validation", 0}, {"train_limit", limit}});
    std::set<std::string> found;
    std::map<int64_t, int> counts;
    for (int64_t i = 0; i < set.train->size(); ++i) {
      found.insert(set.train->get(i).id);
      ++counts[set.train->label(i)];
    }
    for (const auto& [label, count] : counts) EXPECT_EQ(count, limit / 10) << label;
    return found;
  };
  const auto small = ids(10), large = ids(20);
  EXPECT_EQ(small.size(), 10u);
  for (const std::string& id : small) EXPECT_TRUE(large.contains(id));
}

}  // namespace sparsight::composed_sets_test
