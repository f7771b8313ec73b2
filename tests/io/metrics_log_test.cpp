#include "sparsight/io/metrics_log.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

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
  EXPECT_EQ(readable_metrics("\n\n").warning, "");
}

TEST(MetricsLog, ADamagedLogIsReadAsFarAsItGoes) {
  const ReadableMetrics metrics = readable_metrics("{\"step\":1}\nnot JSON\n\n[1]\n{\"step\":2}\n{\"step\":3");
  ASSERT_EQ(metrics.lines.size(), 2u);
  EXPECT_EQ(metrics.lines[1]["step"], 2);
  EXPECT_EQ(metrics.warning, "3 lines of metrics.jsonl could not be read and were left out; the first is line 2");
  EXPECT_EQ(readable_metrics("x").warning.substr(0, 7), "1 line ");
}

TEST(MetricsLog, ADamagedLineIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("log", "{\"step\":1}\nnot JSON\n");
  EXPECT_NE(testing::message_of([&] { read_metrics(path); }).find("log:2 is not a JSON object"), std::string::npos);
  EXPECT_NE(testing::message_of([&] { MetricsLog(path, 5); }).find("log:2 is not a JSON object"), std::string::npos);
  const std::string other = folder.write("other", "{\"kind\":\"train\"}\n");
  EXPECT_NE(testing::message_of([&] { MetricsLog(other, 5); }).find("no integer \"step\""), std::string::npos);
}

}  // namespace sparsight::metrics_log_test
