// The datasets of image files: folder, domain_folder, manifest.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "sparsight/data/register_data.h"
#include "tests/data/sets/set_files.h"
#include "tests/support/warnings.h"

namespace sparsight::file_sets_test {

using testing::collect_warnings;
using testing::complaint;
using testing::grey_png;
using testing::says;
using testing::TemporaryFolder;

DataSplits make_files(const std::string& name, Json settings) {
  return data_sets().make(name, settings, "data", DataContext{1});
}

TEST(FolderSet, SortsClassesAndPassesOverHiddenAndOtherFiles) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) {
    folder.write("zebra/" + std::to_string(i) + ".png", grey_png(100 + i));
    folder.write("ant/nested/" + std::to_string(i) + ".PNG", grey_png(i));
  }
  folder.write("ant/.hidden.png", "x");
  folder.write("__MACOSX/ant/._a.png", "x");
  folder.write("ant/notes.txt", "x");
  folder.write(".git/a.png", "x");
  folder.write("readme.md", "x");
  std::filesystem::create_directory_symlink("..", folder.path("ant/loop"));
  const DataSplits set = make_files("folder", {{"root", folder.path()}, {"channels", 1}});
  EXPECT_EQ(set.train->info().classes, std::vector<std::string>({"ant", "zebra"}));
  EXPECT_EQ(set.train->size(), 18);
  EXPECT_EQ(set.validation->size(), 2);
  EXPECT_EQ(set.test, set.validation);
  for (int64_t i = 0; i < set.train->size(); ++i) {
    const Sample sample = set.train->get(i);
    EXPECT_EQ(sample.label, sample.image[0][0][0].item<int>() / 100);
    EXPECT_EQ(sample.label, set.train->label(i));
    EXPECT_EQ(sample.id.substr(0, 3), sample.label == 0 ? "ant" : "zeb");
  }
}

TEST(FolderSet, UsesPartsWhereThereAreSome) {
  const TemporaryFolder folder;
  folder.write("train/a/1.png", grey_png(1));
  folder.write("train/b/1.png", grey_png(2));
  folder.write("val/b/2.png", grey_png(3));
  folder.write("test/b/3.png", grey_png(4));
  const DataSplits set = make_files("folder", {{"root", folder.path()}});
  EXPECT_EQ(set.train->size(), 2);
  EXPECT_EQ(set.validation->get(0).id, "val/b/2.png");
  EXPECT_EQ(set.test->get(0).id, "test/b/3.png");
  EXPECT_EQ(set.test->label(0), 1);
  EXPECT_EQ(set.test->get(0).image.size(0), 3);  // grey files are read as RGB unless channels = 1
  folder.write("test/c/3.png", grey_png(4));
  EXPECT_TRUE(says(complaint([&] {
                     make_files("folder", {{"root", folder.path()}});
                   }),
                   "test/c is a class that train/ does not have"));
}

TEST(FolderSet, WarnsWhereDomainsWouldBecomeClasses) {
  const TemporaryFolder folder;
  for (const std::string domain : {"photo/", "sketch/"})
    for (int i = 0; i < 10; ++i) {
      folder.write(domain + "dog/" + std::to_string(i) + ".png", grey_png(i));
      folder.write(domain + "cat/" + std::to_string(i) + ".png", grey_png(i));
    }
  const auto warnings = [&] { return collect_warnings([&] { make_files("folder", {{"root", folder.path()}}); }); };
  EXPECT_TRUE(says(
      warnings(), "has the same 2 subfolders (cat, dog): if these are the classes, use --set data.name=domain_folder"));
  folder.write("sketch/fish/1.png", grey_png(1));
  EXPECT_EQ(warnings().find("subfolders"), std::string::npos);
}

TEST(FolderSet, NamesEmptyClassFolders) {
  const TemporaryFolder folder;
  folder.write("a/1.png", grey_png(1));
  folder.write("empty/notes.txt", "x");
  std::filesystem::create_directory(folder.path("void"));
  const auto message = [&] { return complaint([&] { make_files("folder", {{"root", folder.path()}}); }); };
  EXPECT_TRUE(says(message(), "/empty has no images"));
  EXPECT_TRUE(says(message(), "(and 1 more"));
  const TemporaryFolder nothing;
  EXPECT_TRUE(says(complaint([&] { make_files("folder", {{"root", nothing.path()}}); }), "has no class folders"));
}

TEST(FolderSet, WarnsOfFilesThatAreNoImages) {
  const TemporaryFolder folder;
  for (const char* image :
       {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png", "test/a/1.png", "test/b/1.png"})
    folder.write(image, grey_png(1));
  EXPECT_EQ(collect_warnings([&] { make_files("folder", {{"root", folder.path()}}); }), "");
  folder.write("val/b/x.txt", "x");
  folder.write("val/b/.hidden", "x");
  EXPECT_EQ(collect_warnings([&] {
              make_files("folder", {{"root", folder.path()}});
            }),
            "warning: 1 file is not JPEG, PNG, WebP, GIF, BMP or TIFF and was ignored: val/b/x.txt; convert it\n");
  for (const char* other : {"train/a/a.avif", "train/a/deep/b.pgm", "train/b/\xFF.jxl"}) folder.write(other, "x");
  EXPECT_EQ(collect_warnings([&] {
              make_files("folder", {{"root", folder.path()}});
            }),
            "warning: 4 files are not JPEG, PNG, WebP, GIF, BMP or TIFF and were ignored: train/a/a.avif, "
            "train/a/deep/b.pgm, "
            "train/b/\\xff.jxl, ...; convert them\n");
  EXPECT_TRUE(
      says(collect_warnings([&] {
             make_files("domain_folder", {{"root", folder.path()}, {"validation", 0}, {"test_domains", {"test"}}});
           }),
           "4 files are not JPEG, PNG, WebP, GIF, BMP or TIFF"));
  folder.write("train/c/a.avif", "x");
  EXPECT_TRUE(says(complaint([&] {
                     make_files("folder", {{"root", folder.path()}});
                   }),
                   "train/c has no images (JPEG, PNG, WebP, GIF, BMP or TIFF), but 1 other file: c/a.avif; convert"));
}

TEST(DomainFolderSet, WarnsOfClassesThatADomainLacks) {
  const TemporaryFolder folder;
  const auto add = [&](const std::string& names) { folder.write(names + "/1.png", grey_png(1)); };
  const auto warnings = [&] {
    return collect_warnings([&] {
      make_files("domain_folder", {{"root", folder.path()}, {"validation", 0}, {"test_domains", {"photo"}}});
    });
  };
  for (const char* domain : {"photo", "sketch", "cartoon"})
    for (const char* name : {"/cat", "/dog"}) add(domain + std::string(name));
  EXPECT_FALSE(says(warnings(), "missing"));
  add("photo/fox");
  EXPECT_TRUE(says(warnings(), ": 1 class is missing in some domains: fox (only in photo); give all domains the same"));
  add("sketch/owl"), add("cartoon/owl");
  EXPECT_TRUE(
      says(warnings(), ": 2 classes are missing in some domains: fox (only in photo), owl (not in photo); give all"));
  for (const char* name : {"photo/a", "photo/b"}) add(name);
  EXPECT_TRUE(
      says(warnings(),
           ": 4 classes are missing in some domains: a (only in photo), b (only in photo), fox (only in photo), "
           "...; give"));
}

TEST(FolderSet, WarnsOfClassesThatAPartLacks) {
  const TemporaryFolder folder;
  for (const char* image : {"train/a/1.png", "train/b/1.png", "val/a/1.png", "test/b/1.png"})
    folder.write(image, grey_png(1));
  const std::string warnings = collect_warnings([&] { make_files("folder", {{"root", folder.path()}}); });
  EXPECT_TRUE(says(warnings, " has no validation images of 1 of its 2 classes: \"b\"; nothing is measured"));
  EXPECT_TRUE(says(warnings, " has no test images of 1 of its 2 classes: \"a\"; nothing is measured"));
  EXPECT_FALSE(says(warnings, "training images"));
  const TemporaryFolder list;
  list.write("a.png", grey_png(1));
  list.write("manifest.csv", "path,label,split\na.png,cat,train\na.png,cat,test\na.png,dog,test\n");
  EXPECT_TRUE(says(collect_warnings([&] {
                     make_files("manifest", {{"root", list.path()}, {"validation", 0}});
                   }),
                   " has no training images of 1 of its 2 classes: \"dog\"; the model cannot learn"));
}

TEST(FolderSet, TellsNamesApartThatPrintAlike) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i)
    for (const char* name : {"a\xFF/", "a\\xff/"}) folder.write(name + std::to_string(i) + ".png", grey_png(i));
  const DataSplits set = make_files("folder", {{"root", folder.path()}});
  EXPECT_EQ(set.train->info().classes, std::vector<std::string>({"a\\x5cxff", "a\\xff"}));
}

TEST(FolderSet, TakesNamesThatAreNotUtf8) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) folder.write("caf\xE9/\xFF" + std::to_string(i) + ".png", grey_png(7));
  const DataSplits set = make_files("folder", {{"root", folder.path()}});
  EXPECT_EQ(set.train->info().classes[0], "caf\\xe9");
  EXPECT_EQ(set.train->get(0).image[0][0][0].item<int>(), 7);
  EXPECT_EQ(set.train->get(0).id.substr(0, 12), "caf\\xe9/\\xff");
}

TEST(FolderSet, IsReadByManyThreads) {
  const TemporaryFolder folder;
  for (int i = 0; i < 50; ++i) folder.write("a/" + std::to_string(100 + i) + ".png", grey_png(i));
  const DataSplits set = make_files("folder", {{"root", folder.path()}, {"validation", 0.02}});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < set.train->size(); ++i) {
        const Sample sample = set.train->get(i);
        wrong[t] += sample.image[0][0][0].item<int>() != std::stoi(sample.id.substr(2)) - 100;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(DomainFolderSet, HoldsOutTestDomains) {
  const TemporaryFolder folder;
  for (const char* domain : {"photo", "art", "sketch"})
    for (const char* name : {"cat", "dog"})
      for (int i = 0; i < 5; ++i)
        folder.write(std::string(domain) + "/" + name + "/" + std::to_string(i) + ".png", grey_png(i));
  const DataSplits set =
      make_files("domain_folder", {{"root", folder.path()}, {"test_domains", {"sketch"}}, {"validation", 0.2}});
  EXPECT_EQ(set.train->info().domains, std::vector<std::string>({"art", "photo", "sketch"}));
  EXPECT_EQ(set.train->size(), 16);
  EXPECT_EQ(set.validation->size(), 4);
  EXPECT_EQ(set.test->size(), 10);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(set.test->domain(i), 2);
  for (int64_t i = 0; i < 16; ++i) EXPECT_NE(set.train->domain(i), 2);
  const auto message = [&](Json domains) {
    return complaint([&] { make_files("domain_folder", {{"root", folder.path()}, {"test_domains", domains}}); });
  };
  EXPECT_TRUE(says(message({"skech"}), "did you mean \"sketch\"?"));
  EXPECT_TRUE(says(message({"art", "photo", "sketch"}), "leave at least one"));
}

TEST(ManifestSet, ReadsLabelsDomainsSplitsAndAttributes) {
  const TemporaryFolder folder;
  for (const char* name : {"a.png", "b, c.png", "d.png"}) folder.write(std::string("pictures/") + name, grey_png(9));
  folder.write("list.csv",
               "path,label,split,domain,brightness\r\n"
               "pictures/a.png,dog,train,indoor,0.5\r\n"
               "\"pictures/b, c.png\",cat,val,outdoor,1\r\n"
               "\r\n"
               "pictures/d.png,dog,test,outdoor,-2e-1\r\n");
  const DataSplits set = make_files("manifest", {{"root", folder.path("list.csv")}});
  EXPECT_EQ(set.train->info().classes, std::vector<std::string>({"cat", "dog"}));
  EXPECT_EQ(set.train->info().domains, std::vector<std::string>({"indoor", "outdoor"}));
  EXPECT_EQ(set.train->info().attributes, std::vector<std::string>({"brightness"}));
  EXPECT_EQ(set.train->label(0), 1);
  EXPECT_EQ(set.validation->get(0).id, "pictures/b, c.png");
  EXPECT_EQ(set.test->get(0).attributes, std::vector<float>({-0.2f}));
  EXPECT_EQ(set.test->domain(0), 1);
  folder.write("manifest.csv", "path,label,split\npictures/a.png,2,train\nno.png,0,test\n");
  const DataSplits numbers = make_files("manifest", {{"root", folder.path()}, {"validation", 0}});
  EXPECT_EQ(numbers.train->info().classes.size(), 3u);
  EXPECT_TRUE(says(complaint([&] { numbers.test->get(0); }), "no.png: No such file"));
}

TEST(Registry, KnowsTheDataSets) {
  for (const char* name : {"mnist", "cifar10", "cifar100", "folder", "domain_folder", "manifest", "npy"})
    EXPECT_EQ(data_sets().get(name).name, name);
  EXPECT_TRUE(says(complaint([] { data_sets().get("cifar"); }), "did you mean \"cifar10\""));
  EXPECT_TRUE(says(complaint([] { make_files("folder", {}); }), "set data.root"));
}

}  // namespace sparsight::file_sets_test
