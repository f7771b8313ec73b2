#include "sparsight/data/domainbed/domainbed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/data/domainbed/mnist_domains.h"
#include "sparsight/data/domainbed/published_domains.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/warp.h"
#include "tests/data/sets/set_files.h"

namespace sparsight::domainbed_test {
namespace {

using testing::complaint;
using testing::grey_png;
using testing::says;
using testing::TemporaryFolder;

DataSplits make_set(Json settings) { return data_sets().make("domainbed", settings, "data", DataContext{1}); }

// Three environments of two classes with 5 images each.
void write_domains(const TemporaryFolder& folder) {
  for (const char* domain : {"art", "photo", "sketch"})
    for (const char* label : {"cat", "dog"})
      for (int i = 0; i < 5; ++i) folder.write(cat(domain, "/", label, "/", i, ".png"), grey_png(i));
}

// Images of MNIST for real tests; "" where they are absent.
std::string real_mnist() {
  const char* home = std::getenv("SPARSIGHT_DATA");
  return home ? cat(home, "/mnist") : "";
}

std::vector<int64_t> count_domains(const DataSet& set) {
  std::vector<int64_t> count(set.info().domains.size(), 0);
  for (int64_t i = 0; i < set.size(); ++i) ++count[static_cast<size_t>(set.domain(i))];
  return count;
}

}  // namespace

TEST(DomainBed, G36_SplitsAreDisjointAndCoverTheEnvironment) {
  const HoldoutSplit split = holdout_split(20, 0.2, 0, 0);  // the seed (0, 0)
  EXPECT_EQ(split.out, (std::vector<int64_t>{7, 6, 10, 17}));
  EXPECT_EQ(split.in, (std::vector<int64_t>{2, 11, 13, 16, 15, 1, 8, 9, 0, 3, 4, 5, 18, 19, 14, 12}));
  EXPECT_EQ(holdout_split(2048, 0.2, 0, 0).out.size(), 409u);
  const HoldoutSplit half = holdout_split(20, 0.2, 0, 0, 10);
  EXPECT_EQ(half.out, (std::vector<int64_t>{7, 6}));
  EXPECT_EQ(half.in, (std::vector<int64_t>{2, 11, 13, 16, 15, 1, 8, 9}));
  EXPECT_NE(holdout_split(20, 0.2, 1, 0).out, split.out);
  EXPECT_NE(holdout_split(20, 0.2, 0, 1).out, split.out);
}

TEST(DomainBed, TrainsOnInValidatesOnOutAndMonitorsTheRestOnce) {
  const TemporaryFolder folder;
  write_domains(folder);
  const DataSplits set = make_set({{"set", "folder"}, {"root", folder.path()}, {"test_envs", {1}}, {"channels", 1}});
  EXPECT_EQ(set.train->info().domains,
            (std::vector<std::string>{"art/in", "art/out", "photo/in", "photo/out", "sketch/in", "sketch/out"}));
  EXPECT_EQ(count_domains(*set.train), (std::vector<int64_t>{8, 0, 0, 0, 8, 0}));
  EXPECT_EQ(count_domains(*set.validation), (std::vector<int64_t>{0, 2, 0, 0, 0, 2}));
  EXPECT_EQ(count_domains(*set.test), (std::vector<int64_t>{0, 0, 8, 2, 0, 0}));
  EXPECT_EQ(count_domains(*set.monitor), (std::vector<int64_t>{8, 0, 8, 2, 8, 0}));
  EXPECT_EQ(set.missing, "");
  std::set<std::string> ids;
  for (const DataSetPtr& part : {set.validation, set.monitor})
    for (int64_t i = 0; i < part->size(); ++i) {
      const Sample sample = part->get(i);
      EXPECT_EQ(sample.domain, part->domain(i));
      EXPECT_TRUE(ids.insert(sample.id).second) << sample.id;
    }
  EXPECT_EQ(ids.size(), 30u);
  const DataSplits all =
      make_set({{"set", "folder"}, {"root", folder.path()}, {"test_envs", Json::array()}, {"channels", 1}});
  EXPECT_EQ(all.test, all.validation);
  EXPECT_EQ(all.missing, "test");
}

TEST(DomainBed, SaysWhichEnvironmentsThereAre) {
  const TemporaryFolder folder;
  write_domains(folder);
  const auto message = [&](const Json& environments) {
    return complaint([&] {
      make_set({{"set", "folder"}, {"root", folder.path()}, {"test_envs", environments}, {"channels", 1}});
    });
  };
  EXPECT_TRUE(says(message({3}), "has the environments 0 to 2, got 3"));
  EXPECT_TRUE(says(message({0, 1, 2}), "leave at least one to train on"));
}

// One fixture for each way in which a folder is not the published dataset.
TEST(DomainBed, G34_FilesThatAreNotTheDatasetAreRefused) {
  const PublishedDomains two{"two", {"Two"}, "two", {"art", "photo", "sketch"}, 2, {10, 10, 10}, "https://example.org"};
  const auto message = [&](const std::function<void(const TemporaryFolder&)>& change) {
    const TemporaryFolder folder;
    write_domains(folder);
    change(folder);
    DomainBedOptions options;
    options.set = "folder", options.root = folder.path(), options.channels = 1;
    const DataSetPtr all = domainbed_environments(options, 1);
    return complaint([&] { check_published(*all, two, folder.path()); });
  };
  const auto remove = [](const std::string& path) {
    return [=](const TemporaryFolder& folder) { std::filesystem::remove_all(folder.path(path)); };
  };
  const auto add = [](const std::string& path) {
    return [=](const TemporaryFolder& folder) { folder.write(path, grey_png(1)); };
  };
  EXPECT_EQ(message([](const TemporaryFolder&) {}), "");
  EXPECT_TRUE(says(message(remove("art")), "has no domain art (found: photo, sketch)"));
  EXPECT_TRUE(says(message(remove("sketch/dog")), "the domain sketch has no image of the class dog"));
  EXPECT_TRUE(says(message(remove("photo/cat/3.png")), "the domain photo has 9 images, not 10"));
  EXPECT_TRUE(says(message(add("photo/horse/0.png")), "has 3 classes, not 2"));
  EXPECT_TRUE(says(message(add("quick/cat/0.png")), "a further domain quick"));
  EXPECT_TRUE(says(message(remove("art")), "Obtain it from https://example.org"));
}

// Section 6.1 of the specification: environments in order, classes and images.
TEST(DomainBed, G34_EveryDatasetIsThatOfTheTable) {
  struct Row {
    std::vector<std::string> domains;
    int64_t classes;
    std::vector<int64_t> images;
  };
  const std::map<std::string, Row> table = {
      {"pacs", {{"art_painting", "cartoon", "photo", "sketch"}, 7, {2048, 2344, 1670, 3929}}},
      {"vlcs", {{"Caltech101", "LabelMe", "SUN09", "VOC2007"}, 5, {1415, 2656, 3282, 3376}}},
      {"office_home", {{"Art", "Clipart", "Product", "Real World"}, 65, {2427, 4365, 4357, 4439}}},
      {"terra_incognita", {{"location_100", "location_38", "location_43", "location_46"}, 10, {}}},
      {"domain_net",
       {{"clipart", "infograph", "painting", "quickdraw", "real", "sketch"},
        345,
        {48129, 51605, 72266, 172500, 172947, 69128}}},
      {"sviro", {{"aclass", "escape", "hilux", "i3", "lexus", "tesla", "tiguan", "tucson", "x5", "zoe"}, 7, {}}},
      {"cub_dg", {{"Candy", "Mosaic", "Natural", "Udnie"}, 200, {11788, 11788, 11788, 11788}}}};
  EXPECT_EQ(published_domains().size(), table.size());
  for (const PublishedDomains& set : published_domains()) {
    const Row& expected = table.at(set.name);
    EXPECT_EQ(set.domains, expected.domains) << set.name;
    EXPECT_EQ(set.classes, expected.classes) << set.name;
    EXPECT_EQ(set.images, expected.images) << set.name;
  }
}

// One image for each domain and class is refused for its number, or, where that is not known, without one class.
TEST(DomainBed, G34_EveryDatasetChecksItsFiles) {
  for (const PublishedDomains& set : published_domains()) {
    if (set.classes > 100) continue;  // thousands of files
    const TemporaryFolder folder;
    for (const std::string& domain : set.domains)
      for (int64_t k = 0; k < set.classes; ++k)
        if (!set.images.empty() || domain != set.domains[1] || k > 0)
          folder.write(cat(domain, "/class", k, "/0.png"), grey_png(1));
    DomainBedOptions options;
    options.set = set.name, options.root = folder.path();
    const std::string refused = complaint([&] { domainbed_environments(options, 1); });
    EXPECT_TRUE(says(refused, cat("is not ", set.name, " as published: the domain "))) << refused;
    EXPECT_TRUE(says(refused, set.images.empty() ? cat(set.domains[1], " has no image of the class class0")
                                                 : cat(set.domains[0], " has ", set.classes, " images, not ")))
        << refused;
  }
}

TEST(DomainBed, G34_APartOfMnistIsNamed) {
  const TemporaryFolder folder;
  testing::write_mnist(folder, 30);
  std::ostringstream log;
  LogSettings settings = log_settings();
  const LogSettings before = settings;
  settings.stream = &log;
  set_log(settings);
  rotated_mnist(folder.path(), 5);
  set_log(before);
  EXPECT_TRUE(says(log.str(), "has 30 training and 30 test images, MNIST as published 60000 and 10000")) << log.str();
}

TEST(DomainBed, G34_EnvironmentsOfPacsInOrder) {
  const char* home = std::getenv("SPARSIGHT_DATA");
  if (!home || !std::filesystem::exists(cat(home, "/pacs112"))) GTEST_SKIP() << "needs PACS below SPARSIGHT_DATA";
  DomainBedOptions options;
  options.set = "pacs", options.root = cat(home, "/pacs112");
  const DataSetPtr all = domainbed_environments(options, 0);
  EXPECT_EQ(all->info().domains, (std::vector<std::string>{"art_painting", "cartoon", "photo", "sketch"}));
  EXPECT_EQ(count_domains(*all), (std::vector<int64_t>{2048, 2344, 1670, 3929}));
}

TEST(DomainBed, G37_RotatedMnist) {
  const TemporaryFolder folder;
  testing::write_mnist(folder, 30);
  const DataSetPtr set = rotated_mnist(folder.path(), 5);
  EXPECT_EQ(count_domains(*set), std::vector<int64_t>(6, 10));  // 60 images
  std::multiset<int64_t> labels;
  for (int64_t i = 0; i < set->size(); ++i) labels.insert(set->label(i));
  for (int64_t label = 0; label < 10; ++label) EXPECT_EQ(labels.count(label), 6u);
  EXPECT_EQ(set->get(59).domain, 5);
  if (real_mnist().empty()) GTEST_SKIP() << "the rest needs MNIST below SPARSIGHT_DATA";
  const DataSetPtr real = rotated_mnist(real_mnist(), 0);
  EXPECT_EQ(count_domains(*real), (std::vector<int64_t>{11667, 11667, 11667, 11667, 11666, 11666}));
  EXPECT_EQ(real->get(0).image.sizes(), (std::vector<int64_t>{1, 28, 28}));
}

// Made by Pillow 11: Image.rotate(degrees, BILINEAR) of 3, 13, ..., 243 in 5 rows.
TEST(DomainBed, G37_RotationHasThePixelsOfPillow) {
  const at::Tensor image = (torch::arange(25) * 10 + 3).to(torch::kByte).view({1, 5, 5});
  const auto turned = [&](double degrees) { return rotate_bilinear(image, degrees).flatten().to(torch::kLong); };
  EXPECT_TRUE(torch::equal(
      turned(15), torch::tensor(std::vector<int64_t>{8,   18,  31,  54,  72,  32,  54,  77,  99,  120, 77,  100, 123,
                                                     145, 168, 125, 146, 168, 191, 213, 173, 191, 214, 227, 237})));
  EXPECT_TRUE(torch::equal(
      turned(75), torch::tensor(std::vector<int64_t>{37,  65,  116, 165, 213, 27,  68,  119, 170, 221, 21,  72, 123,
                                                     173, 224, 24,  75,  126, 177, 218, 32,  80,  129, 180, 208})));
  EXPECT_TRUE(torch::equal(rotate_bilinear(image, 0), image));
}

// Digit i % 10 has the pixels i / 10 % 250 + 1 and i / 2500 + 1, so that its digit can be told from its image.
void write_numbered_mnist(const TemporaryFolder& folder, int64_t count) {
  std::string images, labels;
  for (int64_t i = 0; i < count; ++i) {
    images += {static_cast<char>(i % 10 + 1), static_cast<char>(i / 10 % 250 + 1), static_cast<char>(i / 2500 + 1)};
    labels += static_cast<char>(i % 10);
  }
  const auto n = static_cast<uint32_t>(count);
  for (const char* part : {"train", "t10k"}) {
    folder.write(cat(part, "-images-idx3-ubyte"), testing::idx_file({n, 1, 3}, images));
    folder.write(cat(part, "-labels-idx1-ubyte"), testing::idx_file({n}, labels));
  }
}

// 60,000 images: the label differs from that of the digit (below five: 1) in a quarter of them, and the colour from the
// label in 10, 20 and 90 % of an environment. Standard errors 0.0018 and at most 0.0028.
TEST(DomainBed, G37_ColoredMnist) {
  const TemporaryFolder folder;
  write_numbered_mnist(folder, 30000);
  const DataSetPtr set = colored_mnist(folder.path(), 0);
  EXPECT_EQ(count_domains(*set), (std::vector<int64_t>{20000, 20000, 20000}));
  EXPECT_EQ(set->get(0).image.sizes(), (std::vector<int64_t>{2, 1, 3}));
  std::vector<double> colours(3, 0);
  double labels = 0;
  for (int64_t i = 0; i < set->size(); ++i) {
    const Sample sample = set->get(i);
    const uint8_t* pixels = sample.image.const_data_ptr<uint8_t>();
    const int64_t colour = pixels[0] > 0 ? 0 : 1, digit = pixels[3 * colour] - 1;
    ASSERT_EQ(pixels[3 * (1 - colour)], 0) << sample.id;
    labels += (sample.label != (digit < 5 ? 1 : 0)) / 60000.0;
    colours[static_cast<size_t>(sample.domain)] += (sample.label != colour) / 20000.0;
  }
  EXPECT_NEAR(labels, 0.25, 0.01);
  EXPECT_NEAR(colours[0], 0.1, 0.01);
  EXPECT_NEAR(colours[1], 0.2, 0.01);
  EXPECT_NEAR(colours[2], 0.9, 0.01);
}

// tests/golden/domainbed/make_mnist_draws.py
TEST(DomainBed, G37_ColoredMnistDrawsAsTorchDoes) {
  const TemporaryFolder folder;
  write_numbered_mnist(folder, 10);
  const DataSetPtr set = colored_mnist(folder.path(), 7);
  const std::vector<int64_t> images = {15, 12, 19, 11, 2, 0, 6, 17, 7, 3, 18, 14, 10, 5, 9, 1, 4, 8, 16, 13},
                             labels = {1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1},
                             colours = {1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0};
  ASSERT_EQ(set->size(), 20);
  for (int64_t i = 0; i < 20; ++i) {
    const auto at = static_cast<size_t>(i);
    const Sample sample = set->get(i);
    EXPECT_TRUE(sample.id.ends_with(cat("/", images[at]))) << sample.id;
    EXPECT_EQ(sample.label, labels[at]) << i;
    EXPECT_GT(sample.image[colours[at]].sum().item<int64_t>(), 0) << i;
    EXPECT_EQ(sample.image[1 - colours[at]].sum().item<int64_t>(), 0) << i;
  }
}

TEST(DomainBed, G37_TheColoredMnistOfMnistHasItsEnvironments) {
  if (real_mnist().empty()) GTEST_SKIP() << "needs MNIST below SPARSIGHT_DATA";
  const DataSetPtr set = colored_mnist(real_mnist(), 0);
  EXPECT_EQ(count_domains(*set), (std::vector<int64_t>{23334, 23333, 23333}));
  EXPECT_EQ(set->get(0).image.sizes(), (std::vector<int64_t>{2, 28, 28}));
}

}  // namespace sparsight::domainbed_test
