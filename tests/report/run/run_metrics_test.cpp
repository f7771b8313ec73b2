#include "sparsight/report/run/run_metrics.h"

#include <gtest/gtest.h>

#include <fstream>

#include "sparsight/core/error.h"
#include "sparsight/report/charts/charts.h"
#include "tests/report/run_fixture.h"

namespace sparsight::run_metrics_test {
namespace {

using testing::eval_record;
using testing::lines;
using testing::train_record;

RunMetrics read_text(const std::string& text) {
  const testing::TemporaryFolder folder;
  return read_run_metrics(folder.write("metrics.jsonl", text));
}

TEST(RunMetrics, SortsByKind) {
  const RunMetrics log = read_text(lines(testing::usual_records()));
  EXPECT_EQ(log.train.size(), 10u);
  EXPECT_EQ(log.evals.size(), 3u);
  EXPECT_EQ(log.notes.size(), 1u);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(RunMetrics, TornLinesCostAWarningOnly) {
  const RunMetrics log = read_text("{\"kind\":\"train\",\"step\":1,\"loss\":NaN}\n\n[1]\n" +
                                   lines({train_record(2, 1)}) + "{\"kind\":\"tr");
  EXPECT_EQ(log.train.size(), 1u);
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_NE(log.warnings[0].find("3 lines"), std::string::npos) << log.warnings[0];
  EXPECT_NE(log.warnings[0].find("line 1"), std::string::npos) << log.warnings[0];
}

TEST(RunMetrics, AResumedRunCountsEachStepOnce) {
  const RunMetrics log = sort_metrics({train_record(10, 1), train_record(20, 2), eval_record("val", 20, 0.1),
                                       train_record(10, 3), eval_record("val", 20, 0.2), eval_record("test", 20, 0.3)});
  ASSERT_EQ(log.train.size(), 1u);
  EXPECT_EQ(number(log.train[0], "loss"), 3);
  ASSERT_EQ(log.evals.size(), 2u);
  EXPECT_EQ(number(log.evals[0], "accuracy"), 0.2);
}

TEST(RunMetrics, FinalEvaluationPrefersTest) {
  const RunMetrics log =
      sort_metrics({eval_record("val", 10, 0.1), eval_record("test", 10, 0.2), eval_record("val", 20, 0.3)});
  EXPECT_EQ(number(final_eval(log, false), "accuracy"), 0.2);
  ASSERT_EQ(last_evals(log).size(), 2u);
  EXPECT_EQ(number(last_evals(log)[0], "step"), 20);
  EXPECT_TRUE(final_eval(sort_metrics({train_record(1, 1)}), false).is_null());
}

// The rules by which a resumed run replaces earlier records, against the plain way of applying them.
TEST(RunMetrics, ResumedRunsOfManySeries) {
  std::vector<Json> records, expected;
  unsigned random = 1;
  for (int i = 0; i < 500; ++i) {
    random = random * 1664525 + 1013904223;
    const Json eval = eval_record(i % 3 == 0 ? "val" : "test", static_cast<int>(random >> 26), i / 1000.0);
    records.push_back(eval);
    std::erase_if(expected, [&](const Json& earlier) {
      return earlier["split"] == eval["split"] && earlier["step"] >= eval["step"];
    });
    expected.push_back(eval);
  }
  const std::vector<Json> evals = sort_metrics(records).evals;
  ASSERT_EQ(evals.size(), expected.size());
  for (size_t i = 0; i < evals.size(); ++i) EXPECT_EQ(evals[i]["accuracy"], expected[i]["accuracy"]) << i;
}

TEST(RunMetrics, KeepsOnlyWhatIsShown) {
  Json train = train_record(10, 1);
  train["layers"] = Json::array({{{"layer", "a"}}});
  const RunMetrics log =
      sort_metrics({train, eval_record("val", 10, 0.1), eval_record("test", 10, 0.1), eval_record("val", 20, 0.1)});
  EXPECT_FALSE(log.train[0].contains("layers"));
  EXPECT_FALSE(log.evals[0].contains("class_expert"));
  EXPECT_TRUE(log.evals[1].contains("class_expert"));
  EXPECT_TRUE(log.evals[2].contains("class_expert"));
  EXPECT_TRUE(log.evals[0].contains("layers"));
}

// A search through the earlier evaluations for each new one would take 2 x 10^10 steps.
TEST(RunMetrics, ManyEvaluationsTakeLinearTime) {
  std::string text;
  for (int i = 1; i <= 200'000; ++i)
    text += cat("{\"kind\":\"eval\",\"split\":\"val\",\"weights\":\"model\",\"step\":", i,
                ",\"accuracy\":0.5,\"loss\":1,\"layers\":[{\"layer\":\"layer ", i % 1000,
                "\",\"load\":[1,2],\"cv_load\":0.1}]}\n");
  const RunMetrics log = read_text(text);
  EXPECT_EQ(log.evals.size(), 200'000u);
  EXPECT_EQ(last_evals(log).size(), 1u);
  EXPECT_EQ(final_eval(log, true)["step"], 200'000);
  EXPECT_LE(expert_charts(log).size(), 300u);
  EXPECT_FALSE(training_charts(log).empty());
}

TEST(RunMetrics, SeriesAndNotesHaveLimits) {
  std::vector<Json> records;
  for (int i = 0; i < 5000; ++i) {
    records.push_back(eval_record("split" + std::to_string(i), 10, 0.1));
    records.push_back({{"kind", "note"}, {"step", i}, {"text", "x"}});
    records.push_back({{"kind", "other"}, {"step", i}});
  }
  const RunMetrics log = sort_metrics(records);
  EXPECT_EQ(log.evals.size(), 16u);
  EXPECT_EQ(log.notes.size(), 1000u);
  EXPECT_EQ(log.warnings, std::vector<std::string>{
                              "left out 13984 records of an unknown kind, without a step or beyond what is shown"});
}

// 640 MB of records, of which the page shows a part.
TEST(RunMetrics, AVeryLongLogIsThinned) {
  RunMetrics log;
  {
    Json eval = eval_record("val", 0, 0.5);
    eval["layers"][0]["load"] = std::vector<int>(1'000'000, 7);  // 16 MB
    const testing::TemporaryFolder folder;
    std::ofstream file(folder.path("metrics.jsonl"));
    for (int step = 1; step <= 40; ++step) {
      eval["step"] = step;
      file << eval.dump() << "\n";
    }
    file.close();
    log = read_run_metrics(folder.path("metrics.jsonl"));
  }
  ASSERT_EQ(log.evals.size(), 40u);  // their numbers stay
  size_t with_layers = 0;
  for (const Json& eval : log.evals) with_layers += eval.contains("layers");
  EXPECT_GE(with_layers, 8u);
  EXPECT_LE(with_layers, 32u);
  EXPECT_TRUE(log.evals.back().contains("layers"));
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_NE(log.warnings[0].find("very long"), std::string::npos);
}

TEST(RunMetrics, NamesThePartOfAnEvaluation) {
  EXPECT_EQ(part_of_eval(Json{{"split", "val"}}), "validation");
  EXPECT_EQ(part_of_eval(Json{{"split", "test"}}), "test");
  EXPECT_EQ(part_of_eval(Json{{"split", "test"}, {"same_as", "val"}}), "test (= validation)");
  EXPECT_EQ(part_of_eval(Json()), "");
}

TEST(RunMetrics, FieldsOfBrokenRecords) {
  const Json record = {{"loss", nullptr}, {"text", 3}, {"name", "a"}};
  EXPECT_FALSE(number(record, "loss"));
  EXPECT_FALSE(number(record, "absent"));
  EXPECT_FALSE(number(Json(), "absent"));
  EXPECT_EQ(text(record, "text"), "");
  EXPECT_EQ(text(record, "name"), "a");
  EXPECT_EQ(numbers(Json::parse("[1, null, \"x\", 2.5]")), (std::vector<double>{1, 0, 0, 2.5}));
}

}  // namespace
}  // namespace sparsight::run_metrics_test
