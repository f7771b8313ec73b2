#include "sparsight/report/run/explain_folder.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/report_page.h"
#include "sparsight/report/table.h"
#include "tests/report/run_fixture.h"

namespace sparsight::explain_folder_test {
namespace {

namespace fs = std::filesystem;

Explanation two_examples() {
  Explanation explanation;
  explanation.source = "best checkpoint, 2 images";
  explanation.classes = {"cat", "dog"};
  explanation.images = explanation.labelled = 2;
  explanation.correct = 1;
  explanation.class_expert["blocks.1/<mlp>"] = Json::parse("[[1, 2], [3, 4]]");
  const at::Tensor picture = at::full({3, 4, 4}, 9, at::kByte);
  explanation.patch_routing = Json::parse(
      R"([{"layer": "moe", "patches": 16, "of": "cell", "classes": [
        {"images": 3, "reached": [1, 0.25], "largest": [0.875, 0], "best_expert": 0, "kept": 1, "dropped_irrelevant": 0.5},
        {"images": 0, "reached": [null, null], "largest": [null, null], "best_expert": 0, "kept": null}]}])");
  explanation.examples = {{"test/0", "cat", "dog", 0.75, picture, picture, "blocks.1.mlp"},
                          {"photo.png", "", "cat", 0.5, picture, {}, ""}};
  return explanation;
}

TEST(ExplainFolder, RemovesWhatAKilledProcessLeft) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"007_image.png.12-0.tmp", "explain.json.12-1.tmp", "mine.tmp"})
    folder.write(std::string("explain/") + name, "x");
  write_explanation(folder.path("explain"), two_examples());
  EXPECT_FALSE(fs::exists(folder.path("explain/007_image.png.12-0.tmp")));
  EXPECT_FALSE(fs::exists(folder.path("explain/explain.json.12-1.tmp")));
  EXPECT_TRUE(fs::exists(folder.path("explain/mine.tmp")));
}

TEST(ExplainFolder, TheReportTakesItUp) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", testing::lines(testing::usual_records()));
  const Json json = write_explanation(explain_folder(run), two_examples());
  EXPECT_EQ(json["accuracy"], 0.5);
  EXPECT_EQ(json["class_expert_pictures"]["blocks.1/<mlp>"], "class_expert_0_blocks.1__mlp_.png");
  EXPECT_TRUE(fs::exists(run + "/explain/class_expert_0_blocks.1__mlp_.png"));

  EXPECT_EQ(json["patch_routing"][0]["of"], "cell");
  const std::string table = patch_routing_table(json["patch_routing"], {"cat", "dog"});
  EXPECT_NE(table.find("moe"), std::string::npos);
  EXPECT_NE(table.find("100 25"), std::string::npos);
  EXPECT_EQ(table.find("dog"), std::string::npos) << "no image of it";
  EXPECT_EQ(patch_routing_table(Json::array(), {}), "");

  const RunSummary summary = read_run_summary(run);
  EXPECT_TRUE(summary.warnings.empty());
  ASSERT_EQ(summary.explain.examples.size(), 2u);
  EXPECT_EQ(summary.explain.examples[0].truth, "cat");
  EXPECT_EQ(summary.explain.examples[0].picture_png.substr(0, 4), "\x89PNG");
  EXPECT_EQ(summary.explain.examples[1].experts_png, "");
  EXPECT_EQ(summary.classes, (std::vector<std::string>{"cat", "dog"}));
  const std::string page = report_page(summary);
  for (const char* part : {"Example predictions", "true: cat", "75.0 %", "photo.png", "Which expert got which patch",
                           "Experts and relevant patches", "<b>100</b> 25", "<b>88</b> 0", "50.0 %"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

// Given images have sections of their own; the class map stays that of the run's data.
TEST(ExplainFolder, GivenImagesStandBesideTheRunsOwn) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", testing::lines(testing::usual_records()));
  Explanation own = two_examples(), given = two_examples();
  own.layers = Json::parse(R"([{"layer": "blocks.1/<mlp>", "class_information":
      {"bits": 0.25, "shuffled": 0.0625, "shuffled_deviation": 0, "maximum": 1, "images": 9}}])");
  given.source = "2 image files";
  given.examples[0].id = "given.png";
  given.class_expert["blocks.1/<mlp>"] = Json::parse("[[77, 0], [0, 77]]");
  write_explanation(explain_folder(run), own);
  EXPECT_EQ(report_page(read_run_summary(run)).find("Given images"), std::string::npos);
  write_explanation(explain_images_folder(run), given);
  const std::string page = report_page(read_run_summary(run));
  for (const char* part : {"<summary>Example predictions<small>best checkpoint, 2 images</small>",
                           "<summary>Given images: Example predictions<small>2 image files</small>",
                           "Given images: Which expert got which patch", "given.png", "test/0",
                           "Class information: 0.250 bits (shuffled classes: 0.062 +- 0.000, at most 1.00)."})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("\"count\":77"), std::string::npos);
  remove_explanations(run);
  EXPECT_EQ(report_page(read_run_summary(run)).find("test/0"), std::string::npos);
  EXPECT_FALSE(fs::exists(run + "/explain_images/explain.json"));
}

TEST(ExplainFolder, G54_TablesOfPartsAndDomainsAreFiles) {
  const testing::TemporaryFolder folder;
  Explanation explanation = two_examples();
  explanation.domains = {"photo", "sketch"};
  explanation.domain_expert["blocks.1.mlp"] = Json::parse("[[5, 6], [7, 8]]");
  explanation.parts = {"beak", "a \"b\""};
  explanation.part_experts = Json::parse(
      R"([{"layer": "blocks.1.mlp", "domain": null, "counts": [[9, 0], [1, 8], [2, 3]]},
          {"layer": "blocks.1.mlp", "domain": "photo", "counts": [[4, 0], [0, 5], [6, 7]]}])");
  const Json json = write_explanation(folder.path("out"), explanation);
  EXPECT_EQ(json["parts"], Json({"beak", "a \"b\"", "background"}));
  EXPECT_EQ(json["part_expert_pictures"]["blocks.1.mlp"], "part_expert_0_blocks.1.mlp.png");
  for (const char* file : {"part_expert_0_blocks.1.mlp.png", "domain_expert_0_blocks.1.mlp.png"})
    EXPECT_EQ(read_file(folder.path("out/") + file, 1 << 20).substr(0, 4), "\x89PNG") << file;
  const std::string csv = read_file(folder.path("out/part_expert.csv"), 1 << 20);
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "layer,domain,part,expert,patches");
  EXPECT_NE(csv.find("\n\"blocks.1.mlp\",,\"a \"\"b\"\"\",1,8\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n\"blocks.1.mlp\",\"photo\",\"background\",0,6\n"), std::string::npos) << csv;
  write_explanation(folder.path("out"), two_examples());
  for (const char* file : {"part_expert_0_blocks.1.mlp.png", "domain_expert_0_blocks.1.mlp.png", "part_expert.csv"})
    EXPECT_FALSE(fs::exists(folder.path("out/") + file)) << file;
}

TEST(ExplainFolder, SaysWhichClassesCount) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", testing::lines(testing::usual_records()));
  Explanation unlabelled = two_examples();
  EXPECT_EQ(write_explanation(explain_folder(run), unlabelled)["class_expert_by"], "true");
  EXPECT_EQ(report_page(read_run_summary(run)).find("Predicted class by expert"), std::string::npos);
  unlabelled.labelled = unlabelled.correct = 0;
  EXPECT_EQ(write_explanation(explain_folder(run), unlabelled)["class_expert_by"], "predicted");
  EXPECT_NE(report_page(read_run_summary(run)).find("Predicted class by expert"), std::string::npos);
}

TEST(ExplainFolder, ReplacesAnEarlierOneAndNoOtherFile) {
  const testing::TemporaryFolder folder;
  folder.write("run/explain/my.png", "mine");
  write_explanation(folder.path("run/explain"), two_examples());
  Explanation fewer = two_examples();
  fewer.examples.resize(1);
  fewer.class_expert = Json::object();
  write_explanation(folder.path("run/explain"), fewer);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path("run/explain")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"000_experts.png", "000_image.png", "explain.json", "my.png"}));
}

TEST(ExplainFolder, AFileInTheWay) {
  const testing::TemporaryFolder folder;
  folder.write("run/explain", "a file");
  EXPECT_THROW(write_explanation(folder.path("run/explain"), two_examples()), Error);
}

}  // namespace
}  // namespace sparsight::explain_folder_test
