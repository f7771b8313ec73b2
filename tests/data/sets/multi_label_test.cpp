// Sets of images with several labels: arrays, manifests, composites, their batches, and what needs one label.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/decorators/concat.h"
#include "sparsight/data/export_images.h"
#include "sparsight/data/loader.h"
#include "sparsight/data/readers/manifest.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sampler.h"
#include "sparsight/data/sets/array_set.h"
#include "sparsight/data/summary.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::multi_label_sets_test {
namespace {

using testing::complaint;
using testing::grey_png;
using testing::npy_file;
using testing::says;
using testing::TemporaryFolder;
using testing::write_mnist;

using Labels = std::vector<int64_t>;

DataSplits make_set(const std::string& name, const Json& settings) {
  return data_sets().make(name, settings, "data", DataContext{});
}

template <class T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values) {
  std::string raw(sizeof(T) * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return npy_file("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "}", raw);
}

// A folder with three images of 2 x 2 pixels in both splits, and the given file of their labels.
class ThreeImages {
 public:
  explicit ThreeImages(const std::string& labels) {
    for (const char* part : {"", "test_"}) {
      folder.write(std::string(part) + "images.npy", npy("|u1", "(3, 2, 2)", std::vector<uint8_t>(12, 7)));
      folder.write(std::string(part) + "labels.npy", labels);
    }
  }
  DataSplits open() const { return make_set("npy", {{"root", folder.path()}, {"validation", 0}}); }
  TemporaryFolder folder;
};

// Classes {0, 2}, {1} and {0, 1, 2}.
const std::vector<uint8_t> kSets = {1, 0, 1, 0, 1, 0, 1, 1, 1};

}  // namespace

TEST(MultiLabelSets, NpyReadsAMatrixOfEveryType) {
  const std::vector<float> floats(kSets.begin(), kSets.end());
  for (const std::string& file :
       {npy("|u1", "(3, 3)", kSets), npy("|b1", "(3, 3)", kSets), npy("<f4", "(3, 3)", floats)}) {
    const DataSplits set = ThreeImages(file).open();
    const DataInfo& info = set.train->info();
    EXPECT_TRUE(info.multi_label);
    EXPECT_EQ(info.classes, (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(set.train->labels(0), Labels({0, 2}));
    EXPECT_EQ(set.train->labels(1), Labels({1}));
    EXPECT_EQ(set.train->get(2).labels, Labels({0, 1, 2}));
    EXPECT_EQ(set.train->label(1), 1);
    EXPECT_EQ(set.train->get(0).label, 0);
  }
  const DataSplits one = ThreeImages(npy("|u1", "(3,)", std::vector<uint8_t>{0, 1, 1})).open();
  EXPECT_FALSE(one.train->info().multi_label);
  EXPECT_EQ(one.train->labels(2), Labels({1}));
  EXPECT_TRUE(one.train->get(2).labels.empty());
}

TEST(MultiLabelSets, NpyRefusesWhatIsNoMatrixOfZerosAndOnes) {
  const auto message = [](const std::string& labels) { return complaint([&] { ThreeImages(labels).open(); }); };
  EXPECT_TRUE(says(message(npy<uint8_t>("|u1", "(3, 2)", {1, 0, 0, 2, 1, 1})), "image 1 has 2 for class 1"));
  EXPECT_TRUE(says(message(npy<float>("<f4", "(3, 2)", {1, 0, 0, 1, NAN, 1})), "image 2 has nan for class 0"));
  EXPECT_TRUE(says(message(npy<float>("<f4", "(3, 2)", {1, 0.5f, 0, 1, 1, 1})), "image 0 has 0.5 for class 1"));
  EXPECT_TRUE(says(message(npy<int32_t>("<i4", "(3, 2)", {1, 0, -1, 1, 1, 1})), "image 1 has -1 for class 0"));
  EXPECT_TRUE(says(message(npy<uint8_t>("|u1", "(3, 2)", {1, 0, 0, 0, 1, 1})), "image 1 has no class"));
  EXPECT_TRUE(says(message(npy<uint8_t>("|u1", "(3, 1)", {1, 1, 1})), "at least 2 classes, got [3, 1]"));
  EXPECT_TRUE(says(message(npy<uint8_t>("|u1", "(3, 1, 2)", {1, 0, 0, 1, 1, 1})), "got 3 axes"));
  EXPECT_TRUE(says(message(npy<float>("<f4", "(3,)", {1, 0, 0})), "got floats"));
  EXPECT_TRUE(says(message(npy<uint8_t>("|u1", "(2, 2)", {1, 0, 0, 1})), "has 2 labels for 3 images"));
}

TEST(MultiLabelSets, NpyNeedsTheSameClassesInAllFiles) {
  const ThreeImages set(npy("|u1", "(3, 3)", kSets));
  set.folder.write("test_labels.npy", npy<uint8_t>("|u1", "(3, 2)", {1, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(says(complaint([&] { set.open(); }), "has labels for 2 classes, there are 3"));
  set.folder.write("test_labels.npy", npy<uint8_t>("|u1", "(3,)", {0, 1, 2}));
  EXPECT_TRUE(says(complaint([&] { set.open(); }), "store both on 2 axes"));
  set.folder.write("test_labels.npy", npy("|u1", "(3, 3)", kSets));
  set.folder.write("class_names.txt", "cat\ndog\n");
  EXPECT_TRUE(says(complaint([&] { set.open(); }), "has labels for 3 classes, there are 2"));
  set.folder.write("class_names.txt", "cat\ndog\nhorse\n");
  EXPECT_EQ(set.open().test->info().classes[2], "horse");
  set.folder.write("images.npy", npy("|b1", "(3, 2, 2)", std::vector<uint8_t>(12, 1)));
  EXPECT_TRUE(says(complaint([&] { set.open(); }), "got bool"));
}

TEST(MultiLabelSets, ManifestsHaveAColumnLabels) {
  const TemporaryFolder folder;
  for (const char* name : {"a.png", "b.png", "c.png"}) folder.write(name, grey_png(9));
  folder.write("manifest.csv", "path,labels,split\na.png,dog;cat,train\nb.png, horse ,train\nc.png,cat;dog;cat,test\n");
  const DataSplits set = make_set("manifest", {{"root", folder.path()}, {"validation", 0}});
  EXPECT_TRUE(set.train->info().multi_label);
  EXPECT_EQ(set.train->info().classes, (std::vector<std::string>{"cat", "dog", "horse"}));
  EXPECT_EQ(set.train->get(0).labels, Labels({0, 1}));
  EXPECT_EQ(set.train->labels(1), Labels({2}));
  EXPECT_EQ(set.test->labels(0), Labels({0, 1}));
  EXPECT_EQ(parse_manifest("path,labels\na,2;0\nb,1\n", "m").rows[0].labels, Labels({0, 2}));
  EXPECT_TRUE(parse_manifest("path,label\na,x;y\nb,z\n", "m").rows[0].labels.empty());  // one class named x;y
  const auto message = [](const std::string& text) { return complaint([&] { parse_manifest(text, "m.csv"); }); };
  EXPECT_TRUE(says(message("path,label,labels\na,1,1;2\n"), "names both label and labels"));
  EXPECT_TRUE(says(message("path,labels\na,\n"), "m.csv:2: the label is empty"));
  EXPECT_TRUE(says(message("path,labels\na,cat;\n"), "m.csv:2: labels has an empty class in \"cat;\""));
  EXPECT_TRUE(says(message("path,labels\na,1;;2\n"), "m.csv:2: labels has an empty class"));
  EXPECT_TRUE(says(message("path,labels\na,1;-2\n"), "m.csv:2: label -2 is out of range"));
  EXPECT_TRUE(says(message("path,labels\na,cat\nb,cat\n"), "names one class"));
}

// write_mnist: image i has the value i in its last pixel and the label i mod 10, so every cell can be identified.
TEST(MultiLabelSets, CompositesHaveTheLabelsOfAllTheirCells) {
  const TemporaryFolder folder;
  write_mnist(folder, 100);
  const Json settings{{"root", folder.path()}, {"digits", {3, 7, 8}}, {"grid", 2}, {"multi_label", true}};
  const DataSplits set = make_set("composite", settings);
  EXPECT_TRUE(set.train->info().multi_label);
  EXPECT_TRUE(set.train->info().super_classes.empty());
  const int64_t digits[] = {3, 7, 8};
  std::vector<int> sizes(4);
  for (int64_t i = 0; i < 200; ++i) {
    const Sample sample = set.train->get(i);
    std::vector<bool> shown(3);
    for (int64_t cell = 0; cell < 4; ++cell) {  // cells of 2 x 3 pixels
      const int64_t digit = sample.image[0][cell / 2 * 2 + 1][cell % 2 * 3 + 2].item<int64_t>() % 10;
      shown.at(static_cast<size_t>(std::find(digits, digits + 3, digit) - digits)) = true;
    }
    Labels expected;
    for (int64_t k = 0; k < 3; ++k)
      if (shown[static_cast<size_t>(k)]) expected.push_back(k);
    EXPECT_EQ(sample.labels, expected);
    EXPECT_EQ(set.train->labels(i), expected);
    EXPECT_EQ(set.train->label(i), expected.front());
    ++sizes.at(expected.size());
  }
  // 4 cells with 3 classes: 3 of 81 show one class, 42 two, 36 three; of 200 images 7, 104 and 89.
  EXPECT_NEAR(sizes[1], 7, 7);
  EXPECT_NEAR(sizes[2], 104, 25);
  EXPECT_NEAR(sizes[3], 89, 25);
  Json distracted = settings;
  distracted["distractors"] = {{{"name", "glyphs"}}};
  distracted["cell_side"] = 4;
  EXPECT_TRUE(says(complaint([&] { make_set("composite", distracted); }), "leave out one of them"));
}

TEST(MultiLabelSets, BatchesHaveLabelSetsAndTheirTargets) {
  const DataSplits set = ThreeImages(npy("|u1", "(3, 3)", kSets)).open();
  LoaderOptions options;
  options.eval_batch = 2;
  options.workers = 0;
  const auto loader = evaluation_loader(set.train, TransformPipeline(Json::array(), "transforms.eval"), options);
  loader->start(0);
  const Batch first = *loader->next(), second = *loader->next();
  EXPECT_TRUE(first.label_sets.equal(at::tensor({1, 0, 1, 0, 1, 0}).view({2, 3}).to(at::kBool)));
  EXPECT_TRUE(first.labels.equal(at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(second.true_labels().equal(at::tensor({1, 1, 1}).view({1, 3}).to(at::kBool)));
  EXPECT_FALSE(first.targets.defined());
  // Smoothed by 0.3: 0.3 / 3 everywhere, 0.7 more at the labels.
  Batch smoothed = first;
  TransformOptions smoothing;
  smoothing.label_smoothing = 0.3;
  RandomStream random(0, "test");
  BatchTransform(smoothing, 3)(smoothed, random);
  const std::vector<double> expected = {0.8, 0.1, 0.8, 0.1, 0.8, 0.1};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(smoothed.targets.view(-1)[i].item<double>(), expected[static_cast<size_t>(i)], 1e-6);
}

TEST(MultiLabelSets, AreCountedByClassAndRefusedWhereOneLabelIsNeeded) {
  const DataSplits set = ThreeImages(npy("|u1", "(3, 3)", kSets)).open();
  const DataSummary summary = summarise(set);
  EXPECT_EQ(summary.parts[0].per_class, Labels({2, 2, 2}));
  EXPECT_TRUE(says(summary_text(summary), "several labels per image"));
  for (const char* sampling : {"class_balanced", "weighted"})
    EXPECT_TRUE(says(complaint([&] {
                       epoch_order(sampling, *set.train, {1, 1, 1}, 0, 0);
                     }),
                     "needs one label per image"));
  const TemporaryFolder folder;
  EXPECT_TRUE(says(complaint([&] { export_images(set, folder.path("out"), "class", [](int64_t, int64_t) {}); }),
                   "needs one label per image"));
  const ThreeImages cells(npy("|u1", "(3, 3)", kSets));
  EXPECT_TRUE(says(complaint([&] {
                     make_set("composite", {{"cells", "npy"},
                                            {"root", cells.folder.path()},
                                            {"digits", {0, 1}},
                                            {"cell_settings", {{{"validation", 0}}}}});
                   }),
                   "needs one label per image"));
  DataInfo info = set.train->info();
  info.multi_label = false;
  const auto one = std::make_shared<ArraySet>(info, LabelledArray{at::zeros({1, 1, 2, 2}, at::kByte), {0}, "x", "x"});
  EXPECT_TRUE(says(complaint([&] { ConcatDataSet({set.train, one}); }), "all several"));
}

}  // namespace sparsight::multi_label_sets_test
