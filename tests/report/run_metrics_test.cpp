#include "sparsight/report/run_metrics.h"

#include <gtest/gtest.h>

#include "tests/report/run_fixture.h"

namespace sparsight::run_metrics_test {
namespace {

using testing::eval_record;
using testing::lines;
using testing::train_record;

TEST(RunMetrics, SortsByKind) {
  const RunMetrics log = parse_metrics(lines(testing::usual_records()));
  EXPECT_EQ(log.train.size(), 10u);
  EXPECT_EQ(log.evals.size(), 3u);
  EXPECT_EQ(log.notes.size(), 1u);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(RunMetrics, TornLinesCostAWarningOnly) {
  const RunMetrics log = parse_metrics("{\"kind\":\"train\",\"step\":1,\"loss\":NaN}\n\n[1]\n" +
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
