#include "sparsight/eval/superclass_division.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/train/run_config.h"
#include "tests/support/program.h"

namespace sparsight::superclass_division_test {
namespace {

using testing::TemporaryFolder;
using Map = std::vector<int64_t>;

// Six classes: the first four of one super-class, the others of a second one.
DataInfo six_classes() {
  DataInfo data;
  data.name = "six";
  data.classes = {"a", "b", "c", "d", "e", "f"};
  data.super_classes = {"large", "small"};
  data.super_class_of = {0, 0, 0, 0, 1, 1};
  return data;
}

Json config(const std::string& superclasses, int experts = 3) {
  const std::string text = cat("[moe]\nblocks = [-1]\nexperts = ", experts,
                               "\n[router]\nname = \"per_image\"\n[superclasses]\n", superclasses);
  return resolve(Config::from_text(text, "test"), config_sections());
}

Json of_file(const std::string& path) { return config("source = \"file\"\nfile = \"" + path + "\""); }

void expect_error(const Json& resolved, const std::string& part) {
  try {
    with_superclasses(resolved, six_classes());
    ADD_FAILURE() << "no error with " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

std::vector<int64_t> count_sizes(const DataInfo& data) {
  std::vector<int64_t> sizes(data.super_classes.size());
  for (const int64_t group : data.super_class_of) ++sizes.at(static_cast<size_t>(group));
  return sizes;
}

}  // namespace

TEST(SuperclassDivision, TheDatasetsOwnIsTheDefault) {
  const DataInfo data = with_superclasses(config(""), six_classes());
  EXPECT_EQ(data.super_class_of, six_classes().super_class_of);
  EXPECT_EQ(data.super_classes, six_classes().super_classes);
}

TEST(SuperclassDivision, M27_AFileGivesOneSuperClassPerLine) {
  const TemporaryFolder folder;
  const DataInfo data = with_superclasses(of_file(folder.write("map.txt", "2\n0\n1\n1\n1\n1\n")), six_classes());
  EXPECT_EQ(data.super_class_of, (Map{2, 0, 1, 1, 1, 1}));
  EXPECT_EQ(data.super_classes, (std::vector<std::string>{"b", "c, d, e, ...", "a"}));
  // The dataset's own division keeps its names.
  const DataInfo same = with_superclasses(of_file(folder.write("own.txt", "0\n0\n0\n0\n1\n1\n")), six_classes());
  EXPECT_EQ(same.super_classes, six_classes().super_classes);
}

TEST(SuperclassDivision, AMapThatDoesNotFitIsOneClearLine) {
  const TemporaryFolder folder;
  expect_error(of_file(folder.write("short.txt", "0\n1\n")), "has 2 lines, and six has 6 classes");
  expect_error(of_file(folder.write("long.txt", "0\n1\n0\n1\n0\n1\n0\n")), "has 7 lines, and six has 6 classes");
  expect_error(of_file(folder.write("gap.txt", "0\n2\n0\n2\n0\n2\n")), "no line names 1");
  for (const char* bad : {"-1", "99999999999999999999", "1e3", "nan", "0 1", ""})
    expect_error(of_file(folder.write("bad.txt", cat("0\n0\n", bad, "\n0\n0\n0\n"))), "bad.txt:3");
  expect_error(of_file(folder.write("huge.txt", "0\n99999\n0\n0\n0\n0\n")), "super-class 99999");
  expect_error(of_file(folder.write("empty.txt", "")), "empty");
  expect_error(of_file(folder.path("none.txt")), "none.txt");
  expect_error(config("source = \"file\""), "needs superclasses.file");
  expect_error(config("file = \"map.txt\""), "set superclasses.source = \"file\"");
}

// Six classes for four experts: sizes 2, 2, 1, 1; and those of the dataset, 4 and 2.
TEST(SuperclassDivision, M28_RandomDivisionsHaveEqualOrMatchedSizes) {
  const DataInfo equal = with_superclasses(config("source = \"random\"", 4), six_classes());
  std::vector<int64_t> sizes = count_sizes(equal);
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (Map{1, 1, 2, 2}));
  EXPECT_EQ(equal.super_class_of, with_superclasses(config("source = \"random\"", 4), six_classes()).super_class_of);
  std::vector<Map> others;
  for (int seed = 0; seed < 5; ++seed)
    others.push_back(
        with_superclasses(config(cat("source = \"random\"\nseed = ", seed), 4), six_classes()).super_class_of);
  EXPECT_FALSE(std::ranges::all_of(others, [&](const Map& map) { return map == others[0]; }));
  const DataInfo matched = with_superclasses(config("source = \"random\"\nsizes = \"matched\"", 4), six_classes());
  EXPECT_EQ(count_sizes(matched), (Map{4, 2}));
  EXPECT_NE(matched.super_class_of, six_classes().super_class_of);
  expect_error(config("source = \"random\"", 7), "7 random super-classes of 6 classes");
  DataInfo undivided = six_classes();
  undivided.super_class_of.clear(), undivided.super_classes.clear();
  EXPECT_THROW(with_superclasses(config("source = \"random\"\nsizes = \"matched\""), undivided), UsageError);
}

TEST(SuperclassDivision, ARunGoesOnWithWhatItRecordedAndRefusesAnotherMap) {
  const TemporaryFolder folder;
  const Map recorded{2, 0, 1, 1, 1, 1};
  const Json resolved = of_file(folder.write("map.txt", "2\n0\n1\n1\n1\n1\n"));
  EXPECT_EQ(with_recorded_superclasses(resolved, six_classes(), recorded).super_class_of, recorded);
  folder.write("map.txt", "2\n0\n1\n1\n0\n1\n");
  try {
    with_recorded_superclasses(resolved, six_classes(), recorded);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has class 4 in super-class 1, now 0"), std::string::npos) << error.what();
  }
  const Json deleted = of_file(folder.path("deleted.txt"));
  const DataInfo data = with_recorded_superclasses(deleted, six_classes(), recorded);
  EXPECT_EQ(data.super_class_of, recorded);
  EXPECT_EQ(data.super_classes[2], "a");
  EXPECT_TRUE(with_recorded_superclasses(config(""), six_classes(), {}).super_classes.empty());
}

}  // namespace sparsight::superclass_division_test
