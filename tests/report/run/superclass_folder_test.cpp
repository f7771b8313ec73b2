#include "sparsight/report/run/superclass_folder.h"

#include <filesystem>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/analysis/superclasses/confusion_picture.h"
#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/data/readers/npy.h"
#include "sparsight/report/charts/confusion_graph.h"
#include "sparsight/report/run/superclass_report.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::superclass_folder_test {
namespace {

// Two pairs of confused classes, one of which has a name made to break a page.
FoundSuperclasses two_pairs() {
  const at::Tensor counts = at::tensor({9, 5, 1, 0, 4, 9, 0, 1, 0, 1, 9, 6, 1, 0, 7, 9}, at::kLong).view({4, 4});
  return find_superclasses(counts, {.superclasses = 2}, {"cat", "dog", "car", "<script>&\x1b[2J"}, {{"run", "a run"}});
}

size_t count_matches(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SuperclassReport, M46_SaysSizesMembersSharesAndLargestConfusions) {
  const Json json = superclass_json(two_pairs());
  EXPECT_EQ(json["superclasses"], 2);
  EXPECT_EQ(json["clusters"][0]["classes"], Json({"cat", "dog"}));
  EXPECT_EQ(json["clusters"][0]["size"], 2);
  EXPECT_NEAR(json["clusters"][0]["inside_share"].get<double>(), 9.0 / 11, 1e-12);
  EXPECT_EQ(json["clusters"][1]["largest_confusions"][0],
            Json({{"true", "<script>&\\x1b[2J"}, {"predicted", "car"}, {"count", 7.0}}));
  EXPECT_NEAR(json["inside_share"].get<double>(), 22.0 / 26, 1e-12);
  EXPECT_EQ(json["eigenvalues"].size(), 4u);
  EXPECT_FALSE(json.contains("published_rows"));
  const std::string text = superclass_report(two_pairs());
  EXPECT_TRUE(
      text.starts_with("super-class 0: 2 classes, 81.8 % of their confusions inside\n  cat, dog\n"
                       "  cat taken for dog: 5\n  dog taken for cat: 4\n"))
      << text;
}

TEST(ConfusionGraph, M46_ShowsEveryClassAndEscapesNames) {
  const std::string svg = confusion_graph_svg(two_pairs());
  EXPECT_EQ(count_matches(svg, "<circle "), 4u);
  EXPECT_EQ(count_matches(svg, "<text "), 4u);
  EXPECT_GE(count_matches(svg, "<path "), 4u) << "two edges for each class, of which some are shared";
  EXPECT_NE(svg.find("&lt;script&gt;&amp;"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(ConfusionPicture, OrdersByClusterAndHasItsSize) {
  const FoundSuperclasses found = two_pairs();
  const at::Tensor picture = confusion_picture(found.counts, {0, 1, 0, 1}, found.classes);
  EXPECT_EQ(picture.size(0), 3);
  EXPECT_GT(picture.size(1), 4 * 22);
  const at::Tensor same = confusion_picture(found.counts, {0, 0, 1, 1}, found.classes);
  EXPECT_EQ(picture.sizes(), same.sizes());
  EXPECT_FALSE(at::equal(picture, same));
}

TEST(SuperclassFolder, WritesTheMapLastAndReplacesIt) {
  const testing::TemporaryFolder folder;
  FoundSuperclasses found = two_pairs();
  write_superclasses(folder.path("found"), found);
  EXPECT_EQ(read_superclass_map(superclass_map_file(folder.path("found"))), (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_TRUE(at::equal(read_npy(folder.path("found/confusion.npy")), found.counts));
  found.clusters.class_to_superclass = {0, 1, 0, 1};
  write_superclasses(folder.path("found"), found);
  EXPECT_EQ(read_superclass_map(superclass_map_file(folder.path("found"))), (std::vector<int64_t>{0, 1, 0, 1}));
  std::filesystem::create_directories(folder.path("run"));
  write_superclasses(superclass_folder(folder.path("run")), found);
  folder.write("run/superclasses/mine.txt", "");
  remove_superclasses(folder.path("run"));
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/superclasses/mine.txt")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/superclasses/confusion.npy")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/superclasses/map.txt")));
  // A file that cannot be replaced leaves no map of the old division beside the files of the new one.
  std::filesystem::remove(folder.path("found/graph.svg"));
  std::filesystem::create_directories(folder.path("found/graph.svg/in_the_way"));
  EXPECT_NE(testing::error_text([&] { write_superclasses(folder.path("found"), found); }), "");
  EXPECT_FALSE(std::filesystem::exists(superclass_map_file(folder.path("found"))));
}

}  // namespace
}  // namespace sparsight::superclass_folder_test
