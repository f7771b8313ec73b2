#include "sparsight/io/metrics_log.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/sanitizers.h"

namespace sparsight::metrics_log_test {
namespace {

Json line(int64_t step) { return {{"kind", "train"}, {"step", step}, {"loss", 1.0 / static_cast<double>(step + 1)}}; }

}  // namespace

TEST(MetricsLog, AResumedLogEqualsAnUnbrokenOne) {
  const testing::TemporaryFolder folder;
  {
    MetricsLog log(folder.path("unbroken"), 0);
    for (int64_t step = 0; step < 9; ++step) log.write(line(step));
  }
  {
    MetricsLog log(folder.path("killed"), 0);
    for (int64_t step = 0; step < 7; ++step) log.write(line(step));
  }
  const std::string whole = read_file(folder.path("killed"), 10000);
  folder.write("killed", whole + R"({"kind":"tr)");  // killed in the middle of a line, after the checkpoint of step 4
  EXPECT_EQ(read_metrics(folder.path("killed")).size(), 7u);
  {
    MetricsLog log(folder.path("killed"), 4);
    for (int64_t step = 5; step < 9; ++step) log.write(line(step));
  }
  EXPECT_EQ(read_file(folder.path("killed"), 10000), read_file(folder.path("unbroken"), 10000));
}

TEST(MetricsLog, TheLinesOfARunsEndAreWrittenAgain) {
  const testing::TemporaryFolder folder;
  MetricsLog(folder.path("log"), 0).write(line(5));
  MetricsLog(folder.path("log"), 5).write({{"kind", "eval"}, {"split", "test"}, {"step", 4}});
  MetricsLog(folder.path("log"), 5).write({{"kind", "note"}, {"split", "test"}, {"step", 5}});
  MetricsLog(folder.path("log"), 5).write({{"kind", "note"}, {"end", true}, {"step", 5}});
  MetricsLog(folder.path("log"), 5).write({{"kind", "done"}, {"step", 5}});
  MetricsLog(folder.path("log"), 5).write({{"kind", "eval"}, {"split", "val"}, {"step", 5}});
  const auto lines = read_metrics(folder.path("log"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["kind"], "train");
  EXPECT_EQ(lines[1]["split"], "val");
}

TEST(MetricsLog, ReadsBackWhatWasWritten) {
  const testing::TemporaryFolder folder;
  MetricsLog log(folder.path("log"), 0);
  log.write({{"kind", "note"}, {"step", 3}, {"text", "a\nb\xff"}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  const auto lines = read_metrics(folder.path("log"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["text"], "a\nb\ufffd");
  EXPECT_TRUE(lines[0]["loss"].is_null());
  EXPECT_TRUE(read_metrics(folder.path("missing")).empty());
}

TEST(MetricsLog, BlankLinesArePassedOver) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("log", "\n{\"step\":1}\n \r\n\n{\"step\":2}\n");
  EXPECT_EQ(read_metrics(path).size(), 2u);
  MetricsLog(path, 1);
  EXPECT_EQ(read_file(path, 100), "{\"step\":1}\n");
  EXPECT_EQ(for_each_readable_line(folder.write("blank", "\n\n"), [](const Json&) {}), "");
}

TEST(MetricsLog, ADamagedLogIsReadAsFarAsItGoes) {
  const testing::TemporaryFolder folder;
  std::vector<Json> lines;
  const auto read = [&](const std::string& text) {
    return for_each_readable_line(folder.write("log", text), [&](Json line) { lines.push_back(std::move(line)); });
  };
  EXPECT_EQ(read("{\"step\":1}\nnot JSON\n\n[1]\n{\"step\":2}\n{\"step\":3"),
            "3 lines of metrics.jsonl could not be read and were left out; the first is line 2");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["step"], 2);
  EXPECT_EQ(read("x").substr(0, 7), "1 line ");
}

// A digit that changed is another result: training does not go on from it, and tables name the line.
TEST(MetricsLog, AChangedDigitIsDamage) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("log");
  {
    MetricsLog log(path, 0);
    for (int64_t step = 0; step < 3; ++step) log.write(line(step));
  }
  const std::string whole = read_file(path, 10000);
  std::string damaged = whole;
  damaged[whole.find("0.5")] = '1';
  folder.write("log", damaged);
  const std::string said = "log:2 does not match its checksum; remove the line or restore the file";
  EXPECT_NE(testing::error_text([&] { read_metrics(path); }).find(said), std::string::npos);
  EXPECT_NE(testing::error_text([&] { MetricsLog(path, 2); }).find(said), std::string::npos);
  std::vector<Json> lines;
  EXPECT_EQ(for_each_readable_line(path, [&](Json object) { lines.push_back(std::move(object)); }),
            "1 line of metrics.jsonl could not be read and was left out; the first is line 2");
  EXPECT_EQ(lines, (std::vector<Json>{line(0), line(2)}));
  // The newline at the very end: the last line is whole, so it is not one that a kill cut off.
  damaged = whole;
  damaged.back() = '*';
  folder.write("log", damaged);
  EXPECT_NE(testing::error_text([&] { read_metrics(path); }).find("log:3 is not a JSON object"), std::string::npos);
  folder.write("log", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(read_metrics(path).size(), 2u);
}

// Lines of any length around the pieces that the file is read in.
TEST(MetricsLog, LinesMayCrossTheBufferAnywhere) {
  const testing::TemporaryFolder folder;
  for (const size_t more : {0, 1, 2, 3, 100}) {
    const std::string filler((1 << 18) - 30 + more, 'x');
    const std::string text =
        "{\"step\":1,\"t\":\"" + filler + "\"}\n{\"step\":2}\n{\"step\":3,\"t\":\"" + filler + "\"}\n{\"step\":4}\n";
    const auto lines = read_metrics(folder.write("log", text));
    ASSERT_EQ(lines.size(), 4u) << more;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[2]["t"], filler);
  }
}

TEST(MetricsLog, ALineOfAnyLengthTakesBoundedMemory) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("log", "{\"step\":1}\n{\"t\":\"");
  std::filesystem::resize_file(path, int64_t{1} << 30);  // a hole: zeros that take no space
  std::ofstream(path, std::ios::app) << "\"}\n{\"step\":2}\n";
  std::vector<Json> lines;
  EXPECT_EQ(for_each_readable_line(path, [&](Json line) { lines.push_back(std::move(line)); }),
            "1 line of metrics.jsonl could not be read and was left out; the first is line 2");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["step"], 2);
  EXPECT_NE(testing::error_text([&] { MetricsLog(path, 5); }).find("log:2 is longer than the 67108864 bytes"),
            std::string::npos);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  if (!test::kAddressSanitizer && !test::kThreadSanitizer) {
    EXPECT_LT(used.ru_maxrss, 1 << 20);  // kB
  }
}

TEST(MetricsLog, DeepAndWideLinesAreBadLines) {
  const testing::TemporaryFolder folder;
  std::string wide = "{\"step\":2";
  for (int i = 0; i < 100'000; ++i) wide += ",\"k" + std::to_string(i) + "\":0";
  const std::string deep = "{\"step\":1,\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
  const std::string path = folder.write("log", deep + wide + "}\n{\"step\":3}\n");
  int64_t read = 0;
  EXPECT_NE(for_each_readable_line(path, [&](const Json&) { ++read; }).find("2 lines"), std::string::npos);
  EXPECT_EQ(read, 1);
  EXPECT_NE(testing::error_text([&] { read_metrics(path); }).find("log:1 is not a JSON object"), std::string::npos);
}

TEST(MetricsLog, ADamagedLineIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("log", "{\"step\":1}\nnot JSON\n");
  EXPECT_NE(testing::error_text([&] { read_metrics(path); }).find("log:2 is not a JSON object"), std::string::npos);
  EXPECT_NE(testing::error_text([&] { MetricsLog(path, 5); }).find("log:2 is not a JSON object"), std::string::npos);
  const std::string other = folder.write("other", "{\"kind\":\"train\"}\n");
  EXPECT_NE(testing::error_text([&] { MetricsLog(other, 5); }).find("no integer \"step\""), std::string::npos);
}

}  // namespace sparsight::metrics_log_test
