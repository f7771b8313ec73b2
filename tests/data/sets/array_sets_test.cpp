// The in-memory datasets: MNIST family, CIFAR, npy.
#include <gtest/gtest.h>

#include <cstring>

#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/cifar_names.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::array_sets_test {

using testing::cifar_record;
using testing::complaint;
using testing::idx_file;
using testing::npy_file;
using testing::says;
using testing::TemporaryFolder;
using testing::write_mnist;

DataSplits make_set(const std::string& name, Json settings, uint64_t seed = 1) {
  return data_sets().make(name, settings, "data", DataContext{seed});
}

TEST(MnistSet, P37_ReadsPlainAndGzipFiles) {
  for (const bool packed : {false, true}) {
    const TemporaryFolder folder;
    write_mnist(folder, 40, "", packed);
    const DataSplits set = make_set("mnist", {{"root", folder.path()}});
    EXPECT_EQ(set.train->size(), 36);
    EXPECT_EQ(set.validation->size(), 4);
    EXPECT_EQ(set.test->size(), 40);
    EXPECT_EQ(set.train->info().classes.size(), 10u);
    EXPECT_EQ(set.train->info().channels, 1);
    EXPECT_EQ(set.train->info().height, 2);
    EXPECT_EQ(set.train->info().width, 3);
    const Sample sample = set.test->get(17);
    EXPECT_EQ(sample.label, 7);
    EXPECT_EQ(sample.id, "test/17");
    EXPECT_EQ(sample.image.sizes(), at::IntArrayRef({1, 2, 3}));
    EXPECT_EQ(sample.image[0][1][2].item<int>(), 17);
  }
}

TEST(MnistSet, LimitsAreBalancedAndValidationZeroUsesTheTestPart) {
  const TemporaryFolder folder;
  write_mnist(folder, 100);
  const DataSplits set =
      make_set("mnist", {{"root", folder.path()}, {"validation", 0}, {"train_limit", 20}, {"test_limit", 10}});
  EXPECT_EQ(set.train->size(), 20);
  EXPECT_EQ(set.test->size(), 10);
  EXPECT_EQ(set.validation->size(), 10);
  std::vector<int> counts(10);
  for (int64_t i = 0; i < 20; ++i) ++counts[set.train->label(i)];
  EXPECT_EQ(counts, std::vector<int>(10, 2));
}

TEST(MnistSet, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const Json settings{{"root", folder.path()}};
  const auto message = [&] { return complaint([&] { make_set("mnist", settings); }); };
  EXPECT_TRUE(says(message(), "has no train-images-idx3-ubyte"));
  folder.write("train-images-idx3-ubyte", idx_file({2, 1, 1}, "ab"));
  EXPECT_TRUE(says(message(), "there is no train-labels-idx1-ubyte"));
  folder.write("train-labels-idx1-ubyte", idx_file({3}, std::string("\1\2\3")));
  EXPECT_TRUE(says(message(), "3 labels for 2 images"));
  folder.write("train-labels-idx1-ubyte", idx_file({2}, std::string("\1\x0A")));
  EXPECT_TRUE(says(message(), "train-labels-idx1-ubyte: image 1 has label 10; the 10 classes are 0 to 9"));
  folder.write("train-labels-idx1-ubyte", idx_file({2, 1}, std::string("\1\2")));
  EXPECT_TRUE(says(message(), "labels must have 1 axis"));
  folder.write("train-labels-idx1-ubyte", idx_file({2}, std::string("\1\2")));
  EXPECT_TRUE(says(message(), "leaves none for training or none for validation"));
  EXPECT_TRUE(says(complaint([] {
                     make_set("mnist", {{"root", "/no/such/place"}});
                   }),
                   "there is no file or folder \"/no/such/place\"; set data.root"));
  EXPECT_TRUE(says(complaint([] { make_set("mnist", {{"variant", "kmnist"}}); }), "run `sparsight data fetch kmnist`"));
}

TEST(Cifar10Set, JoinsItsBatches) {
  const TemporaryFolder folder;
  for (int batch = 1; batch <= 5; ++batch) {
    std::string records;
    for (int i = 0; i < 10; ++i) records += cifar_record({static_cast<char>(i)}, batch);
    folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(batch) + ".bin", records);
  }
  folder.write("cifar-10-batches-bin/test_batch.bin", cifar_record("\x03", 9));
  const DataSplits set = make_set("cifar10", {{"root", folder.path()}, {"validation", 0}});
  EXPECT_EQ(set.train->size(), 50);
  EXPECT_EQ(set.train->get(34).id, "data_batch_4/4");
  EXPECT_EQ(set.train->get(34).image[2][31][31].item<int>(), 4);
  EXPECT_EQ(set.train->label(34), 4);
  EXPECT_EQ(set.train->info().classes[3], "cat");
  EXPECT_EQ(set.test->size(), 1);
  folder.write("cifar-10-batches-bin/test_batch.bin", cifar_record("\x0A", 9));
  EXPECT_TRUE(says(complaint([&] {
                     make_set("cifar10", {{"root", folder.path()}});
                   }),
                   "test_batch.bin: image 0 has label 10"));
}

TEST(Cifar100Set, HasFineAndCoarseLabels) {
  const TemporaryFolder folder;
  std::string records;
  for (int fine = 0; fine < 100; ++fine)
    records += cifar_record({static_cast<char>(cifar100_fine_to_coarse()[fine]), static_cast<char>(fine)}, fine);
  folder.write("train.bin", records);
  const DataSplits fine = make_set("cifar100", {{"root", folder.path()}});
  EXPECT_EQ(fine.train->info().classes.size(), 100u);
  EXPECT_EQ(fine.train->info().super_classes.size(), 20u);
  EXPECT_EQ(fine.train->info().super_classes[fine.train->info().super_class_of[1]], "fish");  // aquarium_fish
  EXPECT_EQ(fine.test, fine.validation);
  const DataSplits coarse = make_set("cifar100", {{"root", folder.path()}, {"labels", "coarse"}, {"validation", 0.2}});
  EXPECT_EQ(coarse.train->info().classes.size(), 20u);
  EXPECT_EQ(coarse.train->size(), 80);
  const Sample sample = coarse.train->get(0);
  EXPECT_EQ(sample.label, cifar100_fine_to_coarse()[sample.image[0][0][0].item<int>()]);
}

TEST(Cifar100Set, RefusesLabelsThatDisagreeAndOtherFiles) {
  const TemporaryFolder folder;
  const auto message = [&] { return complaint([&] { make_set("cifar100", {{"root", folder.path()}}); }); };
  EXPECT_TRUE(says(message(), "has no train.bin"));
  folder.write("train.bin", cifar_record(std::string("\0\0", 2), 1));
  EXPECT_TRUE(says(message(), "image 0 has coarse label 0 and fine label 0, which belongs to 4"));
  folder.write("train.bin", cifar_record("\x64\x64", 1));
  EXPECT_TRUE(says(message(), "image 0 has label 100"));
  folder.write("train.bin", std::string(3073, '\0'));
  EXPECT_TRUE(says(message(), "not a whole number of 3074-byte records"));
}

std::string u1_npy(const std::string& shape, const std::string& values) {
  return npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + "}", values);
}

TEST(NpySet, ReadsEveryLayout) {
  const TemporaryFolder folder;
  const std::string labels = u1_npy("(2,)", std::string("\0\1", 2));
  folder.write("labels.npy", labels);
  folder.write("test_labels.npy", labels);
  const auto image_sizes = [&](const std::string& shape, size_t values, const std::string& layout) {
    folder.write("images.npy", u1_npy(shape, std::string(values, 'a')));
    folder.write("test_images.npy", u1_npy(shape, std::string(values, 'a')));
    const DataSplits set = make_set("npy", {{"root", folder.path()}, {"validation", 0}, {"layout", layout}});
    return set.test->get(1).image.sizes().vec();
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(image_sizes("(2, 4, 5)", 40, "auto"), Sizes({1, 4, 5}));
  EXPECT_EQ(image_sizes("(2, 3, 4, 5)", 120, "auto"), Sizes({3, 4, 5}));
  EXPECT_EQ(image_sizes("(2, 4, 5, 3)", 120, "auto"), Sizes({3, 4, 5}));
  EXPECT_EQ(image_sizes("(2, 3, 5, 3)", 90, "hwc"), Sizes({3, 3, 5}));
  EXPECT_EQ(image_sizes("(2, 3, 5, 3)", 90, "chw"), Sizes({3, 5, 3}));
  EXPECT_TRUE(says(complaint([&] { image_sizes("(2, 3, 5, 3)", 90, "auto"); }), "set data.layout"));
  EXPECT_TRUE(says(complaint([&] { image_sizes("(2, 4, 5, 2)", 80, "auto"); }), "1 or 3 channels, got [2, 4, 5, 2]"));
}

TEST(NpySet, ScalesRealNumbersAndChecksRanges) {
  const TemporaryFolder folder;
  const auto make_value = [&](std::vector<float> values) {
    std::string raw(sizeof(float) * values.size(), '\0');
    std::memcpy(raw.data(), values.data(), raw.size());
    for (const char* part : {"", "test_"}) {
      folder.write(std::string(part) + "images.npy",
                   npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2)}", raw));
      folder.write(std::string(part) + "labels.npy", u1_npy("(1,)", std::string(1, '\0')));
    }
    return make_set("npy", {{"root", folder.path()}, {"validation", 0}}).train->get(0).image[0][0][1].item<int>();
  };
  EXPECT_EQ(make_value({0, 1}), 255);
  EXPECT_EQ(make_value({0, 0.5f}), 128);  // round(127.5) to even
  EXPECT_TRUE(says(complaint([&] { make_value({0, 1.5f}); }), "values must be 0 to 1"));
  EXPECT_TRUE(says(complaint([&] { make_value({0, NAN}); }), "values must be 0 to 1"));
  EXPECT_TRUE(says(complaint([&] { make_set("npy", {{"root", folder.path("none")}}); }), "there is no"));
}

}  // namespace sparsight::array_sets_test
