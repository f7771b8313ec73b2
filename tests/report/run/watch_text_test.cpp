#include "sparsight/report/run/watch_text.h"

#include <gtest/gtest.h>

namespace sparsight::watch_text_test {
namespace {

Json train(int64_t step, double loss, double seconds) {
  return {{"kind", "train"}, {"step", step}, {"epoch", step / 10}, {"loss", loss}, {"seconds", seconds}};
}

Json validation(int64_t step, double accuracy) {
  return {{"kind", "eval"},
          {"split", "val"},
          {"weights", "model"},
          {"step", step},
          {"epoch", step / 10},
          {"accuracy", accuracy},
          {"layers", {{{"layer", "blocks.1.mlp"}, {"load", {30, 10, 20, 20}}, {"max_over_mean", 1.5}}}}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CurveBars, GoFromTheLowestToTheHighestBlock) {
  EXPECT_EQ(curve_bars({3, 1, 2}), "█▁▅");
  EXPECT_EQ(curve_bars({5, 5}), "▁▁");
  EXPECT_EQ(curve_bars({}), "");
  EXPECT_EQ(curve_bars({0, 2, 7, 9}, 2), "▁█");  // means of neighbours, 1 and 8
}

TEST(WatchText, SaysHowFarARunIs) {
  // 10 steps an epoch at 4 steps a second; 20 of 100 are done, so 80 / 4 s are left.
  std::vector<Json> records{train(10, 2, 2.5), validation(10, 0.5), train(20, 1, 5), validation(20, 0.4)};
  const Json config = {{"train", {{"epochs", 10}}}};
  const std::string text = watch_text(sort_metrics(records), config);
  EXPECT_TRUE(has(text, "epoch 2 of 10, step 20, 4.0 steps/s, about 20 s left")) << text;
  EXPECT_TRUE(has(text, "1.0000")) << text;
  EXPECT_TRUE(has(text, "from 2.0000")) << text;
  EXPECT_TRUE(has(text, "40.00 %")) << text;
  EXPECT_TRUE(has(text, "best 50.00 %")) << text;
  EXPECT_TRUE(has(text, "4 experts")) << text;
  EXPECT_TRUE(has(watch_text(sort_metrics(records), {{"train", {{"epochs", 10}, {"max_steps", 60}}}}), "10 s left"));
  // An evaluation in the middle of an epoch: step 25 of epoch 2.
  records.push_back(train(25, 1, 6.25));
  EXPECT_TRUE(has(watch_text(sort_metrics(records), config), "about 19 s left"));
  records.push_back({{"kind", "done"}, {"step", 20}});
  EXPECT_TRUE(has(watch_text(sort_metrics(records), config), "4.0 steps/s, finished"));
  EXPECT_EQ(watch_text(sort_metrics({}), config), "no step is recorded yet\n");
  EXPECT_TRUE(has(watch_text(sort_metrics({train(10, 2, 2.5)}), nullptr), "epoch 1, step 10\n"));
}

}  // namespace
}  // namespace sparsight::watch_text_test
