// The explain verb of the program, on a small trained run.
#include <algorithm>
#include <filesystem>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/atomic_file.h"
#include "tests/e2e/train_fixture.h"
#include "tests/report/browser.h"

namespace sparsight::explain_run_test {
namespace {

namespace fs = std::filesystem;
using testing::run_program;

// One run for all tests of this file: training takes seconds.
class ExplainRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TemporaryFolder();
    run_ = folder_->path("run");
    const auto result =
        run_program({"train", testing::tiny_config(*folder_), "--set", "train.epochs=1", "--out", run_, "--quiet"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static void expect_one_line(const testing::ProgramResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  static testing::TemporaryFolder* folder_;
  static std::string run_;
};
testing::TemporaryFolder* ExplainRun::folder_ = nullptr;
std::string ExplainRun::run_;

TEST_F(ExplainRun, OwnData) {
  const auto result = run_program({"explain", run_, "--images", "20", "--examples", "3", "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["images"], 20);
  ASSERT_EQ(json["layers"].size(), 1u);
  EXPECT_EQ(json["layers"][0]["experts"], 4);
  EXPECT_EQ(json["class_expert"].begin()->size(), 4u);
  ASSERT_EQ(json["examples"].size(), 3u);
  for (const Json& example : json["examples"])
    for (const char* key : {"picture", "experts"})
      EXPECT_TRUE(fs::exists(run_ + "/explain/" + example[key].get<std::string>()));
  EXPECT_EQ(read_file(run_ + "/explain/explain.json", 1 << 20), result.out);
  // 16 x 16 pixels: the input and the layer, 224 pixels each, with margins of 10; the side from the PNG's header.
  const std::string png = read_file(run_ + "/explain/000_experts.png", 1 << 20);
  EXPECT_EQ(static_cast<uint8_t>(png[18]) * 256 + static_cast<uint8_t>(png[19]), 10 + 2 * 234);

  const std::string browser = testing::find_browser();
  if (browser.empty()) GTEST_SKIP() << "no chromium on the PATH (or set SPARSIGHT_BROWSER)";
  const testing::BrowserPage page = testing::open_in_browser(browser, run_ + "/report.html");
  EXPECT_GT(page.charts, 0);
  EXPECT_EQ(page.console, "");
  EXPECT_NE(page.dom.find("id=\"problems\" hidden"), std::string::npos);
  EXPECT_EQ(testing::count(page.dom, "<img alt="), 6);
}

TEST_F(ExplainRun, OwnPictures) {
  const std::string png = encode_png(at::full({3, 16, 16}, 90, at::kByte));
  folder_->write("photos/a.png", png);
  folder_->write("photos/deep/b.png", png);
  ASSERT_EQ(run_program({"explain", run_, "--images", "8", "--quiet"}).exit_code, 0);
  const std::string own = read_file(run_ + "/explain/explain.json", 1 << 20);
  const auto result = run_program({"explain", run_, folder_->path("photos"), "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(run_ + "/explain/explain.json", 1 << 20), own) << "of the run's data";
  EXPECT_NE(result.out.find("pictures: " + run_ + "/explain_images\n"), std::string::npos) << result.out;
  EXPECT_NE(read_file(run_ + "/explain_images/explain.json", 1 << 20).find("2 image files"), std::string::npos);
  EXPECT_NE(result.out.find("predicted class  top experts of blocks.1.mlp"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("bits"), std::string::npos) << "without classes there is no class information";
  EXPECT_NE(result.out.find("2 image files"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("accuracy"), std::string::npos) << "of pictures without a class";
  EXPECT_NE(result.out.find("MoE layer"), std::string::npos) << result.out;
}

TEST_F(ExplainRun, AFolderOfOnesOwnLeavesTheRunAsItIs) {
  const std::string report = read_file(run_ + "/report.html", 1 << 26), out = folder_->path("deep/out");
  const auto result = run_program({"explain", run_, "--split", "train", "--images", "40", "--out", out, "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("40 images of the train split of glyphs\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" bits (shuffled classes: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("pictures: " + out + "\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("report:"), std::string::npos) << result.out;
  EXPECT_TRUE(fs::exists(out + "/explain.json"));
  EXPECT_EQ(read_file(run_ + "/report.html", 1 << 26), report);
  const auto images_too = run_program({"explain", run_, folder_->path("photos"), "--split", "val"});
  EXPECT_EQ(images_too.exit_code, 2) << images_too.err;
  EXPECT_NE(images_too.err.find("leave it out or name no images"), std::string::npos) << images_too.err;
}

TEST_F(ExplainRun, SettingsReachTheModel) {
  const auto assignments = [&](const std::string& assignment) {
    const auto result =
        run_program({"explain", run_, "--images", "8", "--examples", "0", "--json", "--quiet", "--set", assignment});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json explained = Json::parse(result.out);
    double sum = 0;
    for (const Json& load : explained["layers"][0]["load"]) sum += load.get<double>();
    return sum;
  };
  EXPECT_EQ(assignments("run.seed=4"), 2 * assignments("router.eval_k=1"));  // k = 2
  EXPECT_EQ(run_program({"explain", run_, "--set", "router.evalk=1", "--quiet"}).exit_code, 2);
}

TEST_F(ExplainRun, TakesTheLastCheckpoint) {
  const auto result = run_program({"explain", run_, "--images", "8", "--checkpoint", "last", "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("last checkpoint", 0), 0u) << result.out;
  EXPECT_EQ(run_program({"explain", run_, "--checkpoint", "first"}).exit_code, 2);
}

TEST_F(ExplainRun, WrongInputIsOneLineAndLeavesNothing) {
  fs::remove_all(run_ + "/explain");
  folder_->write("torn.png", "\x89PNG");
  expect_one_line(run_program({"explain", run_, folder_->path("torn.png"), "--quiet"}), "torn.png");
  expect_one_line(run_program({"explain", run_, folder_->path("absent.png"), "--quiet"}), "absent.png");
  expect_one_line(run_program({"explain", folder_->path("nowhere")}), "not a run folder");
  folder_->write("bare/config.toml", "");
  expect_one_line(run_program({"explain", folder_->path("bare")}), "checkpoint");
  EXPECT_FALSE(fs::exists(run_ + "/explain"));
}

}  // namespace
}  // namespace sparsight::explain_run_test
