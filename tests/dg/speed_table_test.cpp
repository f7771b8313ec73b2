#include "sparsight/dg/speed_table.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::speed_table_test {
namespace {

using nlohmann::ordered_json;

ordered_json line(int64_t step, const ordered_json& more, const char* algorithm = "erm") {
  ordered_json object = {
      {"args",
       {{"dataset", "toy"}, {"algorithm", algorithm}, {"test_envs", {0}}, {"trial_seed", 0}, {"hparams_seed", 0}}},
      {"step", step},
      {"env0_in_acc", 0.5},
      {"env0_out_acc", 0.5}};
  object.update(more);
  return object;
}

}  // namespace

// Steps 0 and 300 as in DomainBed: one update of 4 s, then 300 of 1 s, so 304 s for 301 updates. Their rates are 6 and
// 24 images per second: 24 + 7200 images.
TEST(DgSpeed, G56_MeansOverUpdates) {
  const DgSpeed speed =
      dg_result({line(300, {{"step_time", 1}, {"images_per_s", 24}, {"mem_gb", 2.5}, {"eval_images_per_s", 100}}),
                 line(0, {{"step_time", 4},
                          {"images_per_s", 6},
                          {"mem_gb", 2},
                          {"eval_images_per_s", 300},
                          {"eval_mem_gb", 1.5}})})
          .speed;
  EXPECT_DOUBLE_EQ(*speed.step_seconds, 304.0 / 301);
  EXPECT_DOUBLE_EQ(*speed.images_per_s, 7224.0 / 304);
  EXPECT_EQ(*speed.evaluation_images_per_s, 200);
  EXPECT_EQ(*speed.peak_gb, 2.5);
  EXPECT_EQ(*speed.evaluation_peak_gb, 1.5);
  EXPECT_EQ(speed_text(speed),
            "1.01 s per step (23.8 images/s), evaluation 200 images/s, peak memory 2.50 GB (1.50 GB in evaluation)");
}

// DomainBed's logs have time and memory only, and without a GPU a memory of 0; earlier ones of this program nothing.
TEST(DgSpeed, G56_WhatIsNotThereIsLeftOut) {
  const DgSpeed theirs = dg_result({line(0, {{"step_time", 0.25}, {"mem_gb", 0}})}).speed;
  EXPECT_EQ(speed_text(theirs), "0.2500 s per step");
  EXPECT_FALSE(theirs.peak_gb.has_value());
  const DgSpeed nothing = dg_result({line(0, {{"step_time", nullptr}, {"mem_gb", nullptr}})}).speed;
  EXPECT_EQ(speed_text(nothing), "");
  EXPECT_TRUE(speed_tables({dg_result({line(0, ordered_json::object())})}).empty());
}

TEST(DgSpeed, G56_ATableOfMeansOverRuns) {
  std::vector<DgResult> results{dg_result({line(0, {{"step_time", 1}, {"mem_gb", 2}})}),
                                dg_result({line(0, {{"step_time", 2}, {"mem_gb", 3}})}),
                                dg_result({line(0, {{"mem_gb", 1}}, "irm")})};
  std::vector<DgTable> tables = speed_tables(results);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].fact_columns, (std::vector<std::string>{"s per step", "peak GB"}));
  const std::string text = formatted(tables, TableFormat::text);
  EXPECT_NE(text.find("toy, time and memory, means over runs"), std::string::npos) << text;
  EXPECT_NE(text.find("| erm | 1.50 | 2.50 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| irm |  | 1.00 |"), std::string::npos) << text;
  const std::string csv = formatted(tables, TableFormat::csv);
  EXPECT_NE(csv.find("erm,s per step,1.5,\n"), std::string::npos) << csv;
  results[2].cost = DgCost{7, 5, 1234567};
  tables = speed_tables(results);
  EXPECT_EQ(tables[0].fact_columns.back(), "MACs");
  EXPECT_EQ(tables[0].rows[1].facts.back().text, "1,234,567");
  EXPECT_EQ(tables[0].rows[0].facts.back().text, "");
}

TEST(DgSpeed, NamesOfOthersStayTextInHtml) {
  const std::string html =
      formatted(speed_tables({dg_result({line(0, {{"step_time", 1}, {"mem_gb", 2}}, "<script>alert(1)</script>")})}),
                TableFormat::html);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)"), std::string::npos) << html;
  EXPECT_EQ(html.find("<script"), std::string::npos) << html;
}

TEST(DgSpeed, RefusesWhatIsNoMeasurement) {
  for (const char* key : {"step_time", "mem_gb", "images_per_s", "eval_images_per_s", "eval_mem_gb"})
    for (const ordered_json& value :
         {ordered_json(-1), ordered_json("fast"), ordered_json(1e300), ordered_json::array()}) {
      if (std::string(key) == "images_per_s" || value.is_null()) continue;  // read only beside a time
      const std::string message = testing::error_text([&] { dg_result({line(0, {{key, value}})}); });
      EXPECT_EQ(message, std::string("\"") + key + "\" must be a number of at least 0") << value;
    }
  for (const ordered_json& cost : {ordered_json(3), ordered_json::object(), ordered_json{{"parameters", -1}},
                                   ordered_json{{"parameters", 1}, {"active_parameters", 1}, {"multiply_adds", "x"}}})
    EXPECT_THROW(dg_result({line(0, {{"cost", cost}})}), Error) << cost;
}

}  // namespace sparsight::speed_table_test
