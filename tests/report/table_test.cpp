#include "sparsight/report/table.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"
#include "tests/report/run_fixture.h"

namespace sparsight::table_test {
namespace {

using testing::eval_record;

TEST(Table, Terminal) {
  // Load 30, 10, 0: shares 75 25 0 %; heights of 8 eighths: 8, 8 / 3 = 2.7 (the third block), none.
  EXPECT_EQ(
      result_table(sort_metrics(testing::usual_records())),
      "  split       weights  step  images  accuracy  loss\n"
      "  validation  model    100   1,000   90.00 %   0.1000\n"
      "  test        model    100   1,000   87.50 %   0.1250\n"
      "\n"
      "  MoE layer     experts  load of each expert, %  CV    busiest / mean  dropped  experts per token\n"
      "  blocks.1.mlp  3        █▃·  75 25 0            0.94  2.25            0.0 %    1.50 (1: 50 %, 2: 50 %)\n"
      "\n"
      "blocks.1.mlp: 1 of 3 experts is dead, with under 1 % of an even share: 2\n"
      "the auxiliary losses of this training did not balance the experts: importance, load; raise their weights in "
      "[losses], or lower optimizer.lr\n");
  EXPECT_EQ(result_table(sort_metrics({})), "");
}

TEST(Table, LogsWithoutExpertsPerTokenHaveADash) {
  Json record = eval_record("test", 1, 0.5);
  record["layers"][0].erase("experts_per_token");
  EXPECT_NE(result_table(sort_metrics({record})).find("0.0 %    -\n"), std::string::npos)
      << result_table(sort_metrics({record}));
}

TEST(Table, ManyExpertsShowTheRange) {
  std::vector<int> load(64, 10);
  load[5] = 70;  // of 63 x 10 + 70 = 700
  EXPECT_NE(result_table(sort_metrics({eval_record("test", 1, 0.5, load)})).find("  1.4 to 10.0  "), std::string::npos);
}

// 4,096 experts: 64 bars, each as high as the busiest of 64 neighbours. Experts 64 to 127 have at most 8 of 16: the
// fifth block; the last 64 have nothing.
TEST(Table, ThousandsOfExpertsShareSixtyFourBars) {
  std::vector<double> load(4096, 1);
  load[0] = 16, load[100] = 8;
  for (size_t e = 4032; e < 4096; ++e) load[e] = 0;
  std::string expected = "█▅";
  for (int bar = 2; bar < 63; ++bar) expected += "▁";
  EXPECT_EQ(load_bars(load), expected + "·");
  EXPECT_EQ(load_bars(std::vector<double>(65, 2)).size(), 64 * std::string("█").size());
}

TEST(Table, ShowsWhatWasKeptBesideWhatWasChosen) {
  Json record = eval_record("test", 1, 0.5);
  record["layers"][0]["kept"] = {20, 10, 0};  // of 30 10 0: 50 and 25 % of all; 5.3 and 2.7 eighths of the busiest
  const std::string table = result_table(sort_metrics({record}));
  EXPECT_NE(table.find("load of each expert, %  kept, % of all chosen  CV"), std::string::npos) << table;
  EXPECT_NE(table.find("█▃·  75 25 0            ▆▃·  50 25 0"), std::string::npos) << table;
  EXPECT_EQ(result_table(sort_metrics({eval_record("test", 1, 0.5)})).find("kept"), std::string::npos);
}

TEST(Table, ShowsWhatRoutersReportThemselves) {
  Json record = eval_record("test", 1, 0.5);
  EXPECT_EQ(result_table(sort_metrics({record})).find("reported"), std::string::npos);
  record["layers"][0]["router"] = {{"sparsity", 0.52}, {"mean_experts", 1234567.0}, {"broken", nullptr}};
  const std::string end =
      "\n"
      "  MoE layer     reported by its router\n"
      "  blocks.1.mlp  sparsity 0.52, mean_experts 1.23457e+06, broken -\n";
  EXPECT_NE(result_table(sort_metrics({record})).find(end), std::string::npos) << result_table(sort_metrics({record}));
  EXPECT_TRUE(layer_table(record["layers"]).ends_with(end));
  EXPECT_NE(result_markdown(sort_metrics({record})).find("| blocks.1.mlp | sparsity 0.52, "), std::string::npos);
}

TEST(Table, SaysWhatExpertsTellAboutTheClass) {
  Json record = eval_record("test", 1, 0.5);
  record["layers"][0]["class_information"] = {
      {"bits", 0.1649}, {"shuffled", 0.05}, {"shuffled_deviation", 0.021}, {"maximum", 2}, {"images", 40}};
  const std::string line = "blocks.1.mlp  0.165 bits (shuffled classes: 0.050 +- 0.021, at most 2.00)\n";
  EXPECT_NE(result_table(sort_metrics({record})).find(line), std::string::npos) << result_table(sort_metrics({record}));
  EXPECT_NE(layer_table(record["layers"]).find(line), std::string::npos);
  EXPECT_EQ(result_table(sort_metrics({eval_record("test", 1, 0.5)})).find("bits"), std::string::npos);
}

// ln 3 = 1.099. Values as an evaluation of a guided per-image router has them, and of one that routes tokens.
TEST(Table, ShowsWhatWasMeasuredOfRouters) {
  Json record = eval_record("test", 1, 0.5);
  record["router_accuracy"] = 0.75;
  record["touched"] = {
      {"parameters", 5719336.0}, {"parameters_max", 5719336}, {"bytes", 22877344.0}, {"bytes_max", 22877344}};
  record["layers"][0].update(
      {{"usage_entropy", 0.5623}, {"experts_per_image", 1.0}, {"experts_per_image_max", 1}, {"router_accuracy", 0.75}});
  Json tokens = record["layers"][0];
  tokens.update({{"layer", "blocks.3.mlp"}, {"experts_per_image", 2.25}, {"experts_per_image_max", 3}});
  tokens.erase("router_accuracy");
  record["layers"].push_back(tokens);
  const std::string table = result_table(sort_metrics({record}));
  EXPECT_NE(table.find("  accuracy  router accuracy  loss\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  50.00 %   75.00 %          0.5000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  MoE layer     entropy of usage  experts per image  router accuracy\n"
                       "  blocks.1.mlp  0.562 of 1.099    1.00               75.00 %\n"
                       "  blocks.3.mlp  0.562 of 1.099    2.25, at most 3    -\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("weights touched per image: 5,719,336 parameters (22.88 MB in fp32)\n"), std::string::npos);
  EXPECT_NE(result_markdown(sort_metrics({record})).find("| blocks.1.mlp | 0.562 of 1.099 | 1.00 | 75.00 % |"),
            std::string::npos);
  EXPECT_EQ(result_table(sort_metrics({eval_record("test", 1, 0.5)})).find("router accuracy"), std::string::npos);
}

// Both weights are listed; the averaged ones are the result, although the raw ones are of a later step.
TEST(Table, M35_SaysWhichOfRawAndAveragedWeightsIsTheResult) {
  Json raw = eval_record("test", 20, 0.5), averaged = eval_record("test", 10, 0.75);
  raw["reported"] = false;
  averaged["weights"] = "ema";
  averaged["reported"] = true;
  const RunMetrics log = sort_metrics({raw, averaged});
  EXPECT_EQ(final_eval(log, false)["weights"], "ema");
  EXPECT_EQ(final_eval(log, true)["weights"], "ema");
  const std::string table = result_table(log);
  EXPECT_NE(table.find("  test   ema (the result)  10    1,000   75.00 %"), std::string::npos) << table;
  EXPECT_NE(table.find("  test   model             20    1,000   50.00 %"), std::string::npos) << table;
}

TEST(Table, NamesExpertsBySuperClass) {
  const Json maps = Json::parse(R"({"a": [[1, 3]]})");
  EXPECT_EQ(class_expert_table(maps, {"cat"}, "class", {"0 pets", "1 birds"}),
            "  class  top experts of a\n"
            "  cat    1 birds (75 %), 0 pets (25 %)\n");
}

TEST(Table, NamesTheMostFrequentConfusions) {
  Json record = eval_record("test", 1, 0.5);
  for (int i = 9; i > 0; --i)
    record["confusions"].push_back({{"true", "dog"}, {"predicted", cat("c", i)}, {"images", i}, {"of", 12}});
  const std::string table = result_table(sort_metrics({record}));
  EXPECT_NE(table.find("  dog -> c9                 9 of 12\n"), std::string::npos) << table;
  EXPECT_NE(table.find("dog -> c5 "), std::string::npos);
  EXPECT_EQ(table.find("dog -> c4 "), std::string::npos) << "only five";
}

TEST(Table, NamesTheTopExpertsOfEachClass) {
  const Json maps = Json::parse(R"({"a": [[1, 2, 1], [0, 0, 0], [0, 8, 0]], "b": [[4, 0], [0, 0], [1, 3]]})");
  EXPECT_EQ(class_expert_table(maps, {"cat", "dog", "horse"}, "class"),
            "  class  top experts of a    top experts of b\n"
            "  cat    1 (50 %), 0 (25 %)  0 (100 %)\n"
            "  horse  1 (100 %)           1 (75 %), 0 (25 %)\n");
  EXPECT_EQ(class_expert_table(Json(), {}, "class"), "");
}

TEST(Table, MissingNumbersAreDashes) {
  const std::string table = result_table(sort_metrics({Json{{"kind", "eval"}, {"step", 3}, {"loss", nullptr}}}));
  EXPECT_NE(table.find("  -      -        3     -       -         -\n"), std::string::npos) << table;
}

TEST(Table, CsvQuotes) {
  Json record = eval_record("a,\"b\"", 7, 0.5);
  record.erase("seconds");
  EXPECT_EQ(result_csv(sort_metrics({record})),
            "split,weights,step,epoch,images,accuracy,loss,seconds\n\"a,\"\"b\"\"\",model,7,0,1000,0.5,0.5,\n");
}

TEST(Table, MarkdownEscapesBars) {
  const std::string text = result_markdown(sort_metrics({eval_record("a|b", 7, 0.5)}));
  EXPECT_NE(text.find("| a\\|b | model | 7 | 1,000 | 50.00 % | 0.5000 |\n"), std::string::npos) << text;
}

TEST(Table, P39_CellsOfClassAndDomainEndWithTheWorst) {
  Json record = eval_record("test", 7, 0.5);
  record["cells"] = Json::parse(R"([{"class": "no", "domain": "dark", "images": 40, "accuracy": 0.75},
                                    {"class": "no", "domain": "bright", "images": 2, "accuracy": 0.5}])");
  record["worst_cell"] = 0.5;
  const std::string table = result_table(sort_metrics({record}));
  EXPECT_NE(table.find("  no     dark    40      75.00 %\n  no     bright  2       50.00 %\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("  worst                  50.00 %\n"), std::string::npos) << table;
}

TEST(Table, OneDomainHasNoColumn) {
  Json record = eval_record("test", 7, 0.5);
  record["cells"] = Json::parse(R"([{"class": "house", "domain": "all", "images": 50, "accuracy": 0},
                                    {"class": "tree", "domain": "all", "images": 40, "accuracy": 0.75}])");
  record["worst_cell"] = 0;
  const std::string table = result_table(sort_metrics({record}));
  EXPECT_NE(table.find("\n"
                       "  class  images  accuracy\n"
                       "  house  50      0.00 %\n"
                       "  tree   40      75.00 %\n"
                       "  worst          0.00 %\n"),
            std::string::npos)
      << table;
}

TEST(Table, OfManyCellsTheWorstAreNamed) {
  Json record = eval_record("test", 7, 0.5);
  for (int i = 0; i < 17; ++i)
    record["cells"].push_back({{"class", "c" + std::to_string(i)},
                               {"domain", i % 2 == 0 ? "clean" : "sketch"},
                               {"images", 50},
                               {"accuracy", i == 7 ? 0 : 0.5 + i / 100.0}});
  const std::string table = result_markdown(sort_metrics({record}));
  EXPECT_NE(table.find("| class (worst 5 of 17 combinations) | domain | images | accuracy |\n|---|---|---|---|\n"
                       "| c7 | sketch | 50 | 0.00 % |\n"
                       "| c0 | clean | 50 | 50.00 % |\n"
                       "| c1 | sketch | 50 | 51.00 % |\n"
                       "| c2 | clean | 50 | 52.00 % |\n"
                       "| c3 | sketch | 50 | 53.00 % |\n\n"),
            std::string::npos)
      << table;
  for (Json& cell : record["cells"]) cell["domain"] = "all";
  EXPECT_NE(result_table(sort_metrics({record})).find("  class (worst 5 of 17)  images  accuracy\n  c7 "),
            std::string::npos);
}

TEST(Table, CellsOfUnexpectedTypesAreDashes) {
  Json record = eval_record("test", 7, 0.5);
  record["cells"] = Json::parse(R"([3, {"class": "tree", "accuracy": "high"}])");
  EXPECT_NE(result_table(sort_metrics({record})).find("  -      -       -\n  tree   -       -\n  worst          -\n"),
            std::string::npos)
      << result_table(sort_metrics({record}));
}

TEST(Table, SaysWhereTheTestPartIsTheValidationPart) {
  Json record = eval_record("test", 7, 0.5);
  record["same_as"] = "val";
  const std::string table = result_table(sort_metrics({eval_record("val", 7, 0.5), record}));
  EXPECT_NE(table.find("\n  validation           model    7     1,000   50.00 %   0.5000\n"
                       "  test (= validation)  model    7     1,000   50.00 %   0.5000\n"),
            std::string::npos)
      << table;
}

TEST(Format, Numbers) {
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(123), "123");
  EXPECT_EQ(duration(4.25), "4.2 s");
  EXPECT_EQ(duration(59.4), "59 s");
  EXPECT_EQ(duration(153), "2 min 33 s");
  EXPECT_EQ(duration(3 * 3600 + 7 * 60), "3 h 07 min");
  EXPECT_EQ(duration(-1), "-");
  EXPECT_EQ(percent(0.98312), "98.31 %");
  EXPECT_EQ(percent(std::nullopt), "-");
}

}  // namespace
}  // namespace sparsight::table_test
