#include "sparsight/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/line_chart.h"
#include "sparsight/report/report_page.h"
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
  for (const char* part : {"<h1>my run</h1>", "87.50 %", "best validation accuracy", "blocks.1.mlp", "vit on glyphs",
                           "step 50: resumed", "1 min 23 s", "1.50 GB", "default-src 'none'"})
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
  EXPECT_EQ(summary.examples.size(), 3u);
  EXPECT_EQ(summary.warnings.size(), 6u) << "torn line, config, env, checkpoint, picture outside, picture missing";
  EXPECT_NE(report_page(summary).find("Not all of this run could be read"), std::string::npos);
}

TEST(Report, RecordsOfUnexpectedTypes) {
  RunSummary run;
  run.log = sort_metrics({Json::parse(R"({"kind": "eval", "step": 1, "accuracy": "high",
                                          "layers": [3, {"load": "x"}], "class_expert": {"a": [1, [2]], "b": 3}})"),
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

TEST(Report, WrongRunsAreOneClearLine) {
  const testing::TemporaryFolder folder;
  folder.write("none/config.toml", "");
  folder.write("empty/config.toml", "");
  folder.write("empty/metrics.jsonl", "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"absent", "no run folder"}, {"none", "no metrics.jsonl yet"}, {"empty", "holds no record"}};
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
