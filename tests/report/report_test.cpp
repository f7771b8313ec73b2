#include "sparsight/report/report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/charts/line_chart.h"
#include "sparsight/report/report_page.h"
#include "sparsight/report/text_table.h"
#include "tests/report/run_fixture.h"

namespace sparsight::report_test {
namespace {

using testing::lines;
using testing::run_program;

TEST(Report, HoldsTheRun) {
  const testing::TemporaryFolder folder;
  const std::string path = write_report(testing::write_run(folder, "my run", lines(testing::usual_records())));
  EXPECT_EQ(path, folder.path("my run") + "/report.html");
  const std::string page = read_file(path, size_t{1} << 24);
  for (const char* part :
       {"<h1>my run</h1>", "87.50 %", "best validation accuracy</span><b>90.00 %</b><span>2 evaluations</span>",
        "blocks.1.mlp", "vit on glyphs", "step 50: resumed", "1 min 23 s", "1.50 GB", "default-src 'none'"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_LT(page.size(), 1'200'000u);
}

TEST(Report, MissingPartsCostAWarningOnly) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", lines(testing::usual_records()) + "{\"kind", "[model\n");
  folder.write("run/env.json", "[");
  folder.write("run/explain/explain.json",
               R"({"examples": [{"picture": "../config.toml"}, 3, {"picture": "gone.png"}]})");
  folder.write("run/checkpoints/last.safetensors", "nonsense");
  const RunSummary summary = read_run_summary(run);
  EXPECT_EQ(summary.explain.examples.size(), 3u);
  EXPECT_EQ(summary.warnings.size(), 6u) << "torn line, config, env, checkpoint, picture outside, picture missing";
  EXPECT_NE(report_page(summary).find("Some files of this run could not be read"), std::string::npos);
}

TEST(Report, HoldsOnlyRegularFilesOfTheRunFolder) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", lines(testing::usual_records()));
  folder.write("secret.json", R"({"secret": "classified"})");
  folder.write("run/explain/good.png", "picture");
  folder.write("run/explain/explain.json", R"({"examples": [
    {"picture": "good.png", "experts": "inside.png"}, {"picture": "outside.png"}, {"picture": "../../secret.json"},
    {"picture": ".."}, {"picture": "pipe"}, {"picture": "device"}]})");
  namespace fs = std::filesystem;
  fs::create_symlink("good.png", run + "/explain/inside.png");
  fs::create_symlink("../../secret.json", run + "/explain/outside.png");
  fs::create_symlink("/dev/zero", run + "/explain/device");
  ASSERT_EQ(mkfifo((run + "/explain/pipe").c_str(), 0600), 0);
  fs::remove(run + "/env.json");
  fs::create_symlink("../secret.json", run + "/env.json");
  const RunSummary summary = read_run_summary(run);
  ASSERT_EQ(summary.explain.examples.size(), 6u);
  EXPECT_EQ(summary.explain.examples[0].picture_png, "picture");
  EXPECT_EQ(summary.explain.examples[0].experts_png, "picture");  // a link within the folder
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(summary.explain.examples[i].picture_png, "") << i;
  EXPECT_TRUE(summary.env.is_null());
  const std::string page = report_page(summary);
  EXPECT_EQ(page.find("classified"), std::string::npos);
  for (const char* part :
       {"explain/outside.png is left out: it leads out of the run folder", "pipe is left out: it is not a regular file",
        "device is left out", "env.json is left out", "explain.json names a file outside its folder: .."})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Report, AnExplanationThroughALinkOutOfTheRunIsLeftOut) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", lines(testing::usual_records()));
  folder.write("elsewhere/explain.json", R"({"caption": "from elsewhere"})");
  std::filesystem::create_directory_symlink("../elsewhere", run + "/explain");
  EXPECT_EQ(read_run_summary(run).explain.caption, "");
  EXPECT_NE(report_page(read_run_summary(run)).find("explain.json is left out"), std::string::npos);
}

TEST(Report, ClassesHaveAColumnForEachDomain) {
  Json record = testing::eval_record("test", 7, 0.5);
  record["cells"] = Json::parse(R"([{"class": "house", "domain": "clean", "images": 50, "accuracy": 0.125},
                      {"class": "house", "domain": "sketch", "images": 30, "accuracy": 0.5},
                      {"class": "a<b", "domain": "sketch", "images": 20, "accuracy": 1}])");
  RunSummary run;
  run.log = sort_metrics({record});
  const std::string page = report_page(run);
  for (const char* part :
       {"<details id=\"accuracy\" open><summary>Classes<small>test, step 7; worst: house, clean with 12.50 %</small>",
        "<th class=\"n\">clean</th><th class=\"n\">sketch</th>",
        "<td>house</td><td class=\"n\">80</td><td class=\"share\">12.50 %<div class=\"bar\"><i "
        "style=\"width:12.5%\"></i></div></td><td class=\"share\">50.00 %",
        "<th>Experts per token</th>", "<td>1.50 (1: 50 %, 2: 50 %)</td>",
        "<td>a&lt;b</td><td class=\"n\">20</td><td class=\"n\">-</td><td class=\"share\">100.00 %"})
    EXPECT_NE(page.find(part), std::string::npos) << part;

  for (Json& cell : record["cells"]) cell["domain"] = "all";
  run.log = sort_metrics({record});
  EXPECT_NE(report_page(run).find("<th class=\"n\">Images</th><th class=\"n\">Accuracy</th></tr>"), std::string::npos);
  run.log = sort_metrics({testing::eval_record("test", 7, 0.5)});
  EXPECT_EQ(report_page(run).find("id=\"accuracy\""), std::string::npos);
}

TEST(Report, ShowsWhatRoutersReportThemselves) {
  Json record = testing::eval_record("test", 7, 0.5);
  RunSummary run;
  run.log = sort_metrics({record});
  EXPECT_EQ(report_page(run).find("Reported by its router"), std::string::npos);
  record["layers"][0]["router"] = {{"a<b", 0.5}, {"sparsity", 0.25}};
  run.log = sort_metrics({record});
  EXPECT_NE(report_page(run).find("<td>blocks.1.mlp</td><td>a&lt;b 0.5, sparsity 0.25</td>"), std::string::npos);
}

TEST(Report, OfManyCellsTheWorstAreListed) {
  Json record = testing::eval_record("test", 7, 0.5);
  record["cells"] = Json::array();
  const auto make_page = [&](int classes) {
    record["cells"] = Json::array();
    for (int i = 0; i < classes; ++i)  // the last is the worst, then that before it
      record["cells"].push_back({{"class", "c" + std::to_string(i)},
                                 {"domain", "all"},
                                 {"images", 50},
                                 {"accuracy", 1 - (i + 1) / static_cast<double>(classes)}});
    RunSummary run;
    run.log = sort_metrics({record});
    return report_page(run);
  };
  const std::string grid = make_page(256), list = make_page(6000);
  EXPECT_NE(grid.find("<td>c0</td>"), std::string::npos);
  EXPECT_EQ(grid.find("(worst"), std::string::npos);
  EXPECT_NE(list.find("<th>Class (worst 50 of 6000 combinations)</th>"), std::string::npos);
  EXPECT_NE(list.find("test, step 7; worst: c5999 with 0.00 %"), std::string::npos);
  EXPECT_LT(list.find("<td>c5999</td><td>all</td>"), list.find("<td>c5950</td><td>all</td>"));
  EXPECT_NE(list.find("<td>c5950</td>"), std::string::npos);
  EXPECT_EQ(list.find("<td>c5949</td>"), std::string::npos);
}

TEST(Report, SaysWhereTheTestPartIsTheValidationPart) {
  Json record = testing::eval_record("test", 7, 0.5);
  record["same_as"] = "val";
  RunSummary run;
  run.log = sort_metrics({record});
  const std::string page = report_page(run);
  EXPECT_NE(page.find("test (= validation) accuracy</span>"), std::string::npos);
  EXPECT_NE(page.find("<td>test (= validation)</td>"), std::string::npos);
}

TEST(Report, RoutingPicturesTellPredictionAndTruth) {
  RunSummary run;
  run.explain.examples = {{"1.png", "house", "tree", 0.75, "", "png", "experts"},
                          {"2.png", "", "tree", 0.5, "", "png", ""}};
  const std::string page = report_page(run);
  EXPECT_NE(page.find("<figcaption><b class=\"wrong\">tree</b> 75.0 %<small>true: house</small><small>1.png</small>"),
            std::string::npos);
  EXPECT_NE(page.find("<figcaption><b class=\"\">tree</b> 50.0 %<small>2.png</small>"), std::string::npos);
}

TEST(Report, RecordsOfUnexpectedTypes) {
  RunSummary run;
  run.log = sort_metrics({Json::parse(R"({"kind": "eval", "step": 1, "accuracy": "high",
                                          "layers": [3, {"load": "x"}], "cells": [3, {"class": 4}], "class_expert": {"a": [1, [2]], "b": 3}})"),
                          Json::parse(R"({"kind": "train", "step": 1, "losses": [1]})"),
                          Json::parse(R"({"kind": "other"})")});
  EXPECT_NE(report_page(run).find("</html>"), std::string::npos);
}

TEST(Report, LongCurvesAreThinned) {
  Series series{"loss", false, {}};
  for (int step = 0; step < 6000; ++step) series.add(step, step % 2);
  const Json rows = line_chart({series}, {"loss", ".2f"})["data"]["values"];
  ASSERT_EQ(rows.size(), 600u);  // means of ten neighbours
  EXPECT_EQ(rows[0]["step"], 9);
  EXPECT_EQ(rows[0]["value"], 0.5);
  EXPECT_TRUE(line_chart({{"empty", false, {}}}, {"loss", ".2f"}).is_null());
}

TEST(Report, CommandLine) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", lines(testing::usual_records()));
  EXPECT_EQ(run_program({"report", run}).out, run + "/report.html\n");
  EXPECT_EQ(run_program({"report", run, "--out", folder.path("a.html")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path("a.html")));
  EXPECT_NE(run_program({"report", run, "--format", "csv"}).out.find("\ntest,model,100,2,1000,0.875,"),
            std::string::npos);
}

TEST(Report, ADamagedLineCostsAWarningInEveryFormat) {
  const testing::TemporaryFolder folder;
  const std::string run = testing::write_run(folder, "run", "not JSON\n" + lines(testing::usual_records()) + "{\"kind");
  for (const char* format : {"html", "table", "csv", "markdown"}) {
    const auto result = run_program({"report", run, "--format", format});
    EXPECT_EQ(result.exit_code, 0) << format << " " << result.err;
    if (format != std::string("html")) {
      EXPECT_NE(result.out.find("test"), std::string::npos) << format;
    }
    EXPECT_NE(result.err.find("2 lines of metrics.jsonl could not be read"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Report, MarkdownShowsForeignNamesAsTheyAre) {
  EXPECT_EQ(markdown({{"class"}, {"a|b <i> *x* [y](z) `c`"}}),
            "| class |\n|---|\n| a\\|b \\<i> \\*x\\* \\[y\\](z) \\`c\\` |\n");
}

TEST(Report, WrongRunsAreOneClearLine) {
  const testing::TemporaryFolder folder;
  folder.write("none/config.toml", "");
  folder.write("empty/config.toml", "");
  folder.write("empty/metrics.jsonl", "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"absent", "not a run folder"}, {"none", "no metrics.jsonl yet"}, {"empty", "no training or evaluation records"}};
  for (const auto& [name, message] : cases) {
    const auto result = run_program({"report", folder.path(name)});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path(name) + "/report.html"));
  }
  const std::string run = testing::write_run(folder, "run", lines(testing::usual_records()));
  EXPECT_EQ(run_program({"report", run, "--out", folder.path("no/such/folder.html")}).exit_code, 1);
  EXPECT_EQ(run_program({"report", run, "--format", "pdf"}).exit_code, 2);
}

}  // namespace
}  // namespace sparsight::report_test
