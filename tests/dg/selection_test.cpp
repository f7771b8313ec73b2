#include "sparsight/dg/selection.h"

#include <gtest/gtest.h>

#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/dg/results/published_results.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::selection_test {
namespace {

using nlohmann::ordered_json;
using testing::TemporaryFolder;

// accuracies: of three environments, {in, out} each, for steps 0 and 300.
DgResult run(std::vector<int64_t> test_envs, int64_t hparams, const std::vector<std::vector<double>>& in,
             const std::vector<std::vector<double>>& out, int64_t trial = 0) {
  DgResult result{{"toy", "erm", std::move(test_envs), trial, hparams}, {}};
  for (size_t i = 0; i < in.size(); ++i) result.evaluations.push_back({static_cast<int64_t>(300 * i), in[i], out[i]});
  return result;
}

// Two hyper-parameter seeds with environment 0 tested alone, and each with its pairs.
std::vector<DgResult> hand_made() {
  return {
      // mean "out" of 1 and 2: 0.55 at step 0, 0.75 at step 300
      run({0}, 0, {{.30, .7, .7}, {.40, .8, .8}}, {{.31, .5, .6}, {.41, .7, .8}}),
      // 0.80 at step 0, 0.60 at step 300
      run({0}, 1, {{.50, .9, .9}, {.60, .9, .9}}, {{.51, .8, .8}, {.35, .6, .6}}),
      // leave one out: hparams 0 has (.2 + .4) / 2 at step 0, (.9 + .5) / 2 at step 300; hparams 1 has .6 and .5
      run({0, 1}, 0, {{.1, .2, .1}, {.1, .9, .1}}, {{.1, .1, .1}, {.1, .1, .1}}),
      run({0, 2}, 0, {{.1, .1, .4}, {.1, .1, .5}}, {{.1, .1, .1}, {.1, .1, .1}}),
      run({0, 1}, 1, {{.1, .6, .1}, {.1, .5, .1}}, {{.1, .1, .1}, {.1, .1, .1}}),
      run({0, 2}, 1, {{.1, .1, .6}, {.1, .1, .5}}, {{.1, .1, .1}, {.1, .1, .1}}),
  };
}

}  // namespace

TEST(DgSelection, G44_TheThreeRulesOnAHandMadeLog) {
  const std::vector<DgResult> runs = hand_made();
  // The highest mean "out" of the training environments is 0.80: hparams 1 at step 0, which has 0.50 on environment 0.
  EXPECT_EQ(selected_accuracy(runs, 0, SelectionRule::training_domains), 0.50);
  // The highest mean is 0.7: hparams 0 at step 300.
  EXPECT_EQ(selected_accuracy(runs, 0, SelectionRule::leave_one_domain_out), 0.40);
  // At the last step: "out" 0.41 of hparams 0 against 0.35, though step 0 of hparams 1 has 0.51.
  EXPECT_EQ(selected_accuracy(runs, 0, SelectionRule::oracle), 0.40);
  EXPECT_EQ(selected_accuracy(runs, 1, SelectionRule::training_domains), std::nullopt);
  std::vector<DgResult> no_pairs(runs.begin(), runs.begin() + 2);
  EXPECT_EQ(selected_accuracy(no_pairs, 0, SelectionRule::leave_one_domain_out), std::nullopt);
}

// tests/golden/domainbed/make_selection.py: 24 sweeps, 288 cells, of which most have ties.
TEST(DgSelection, G44_TiesAndGapsAreResolvedAsInDomainBed) {
  const ordered_json sweeps =
      ordered_json::parse(read_file(test::source_path("tests/golden/domainbed/selection.json"), size_t{1} << 24));
  using Accuracies = std::vector<double>;
  int64_t cells = 0, missing = 0;
  for (const ordered_json& sweep : sweeps) {
    std::map<std::string, DgResult> by_run;
    for (const ordered_json& record : sweep.at("records")) {
      DgResult& result = by_run[record.at("test_envs").dump() + record.at("hparams_seed").dump()];
      result.name = {"toy", "erm", record.at("test_envs").get<std::vector<int64_t>>(), 0,
                     record.at("hparams_seed").get<int64_t>()};
      result.evaluations.push_back(
          {record.at("step").get<int64_t>(), record.at("in").get<Accuracies>(), record.at("out").get<Accuracies>()});
    }
    std::vector<DgResult> runs;
    for (const auto& [key, result] : by_run) runs.push_back(result);
    for (const SelectionRule rule : selection_rules())
      for (int64_t test = 0; test < 4; ++test) {
        const ordered_json& expected = sweep.at("chosen").at(to_text(rule)).at(static_cast<size_t>(test));
        const auto found = selected_accuracy(runs, test, rule);
        EXPECT_EQ(found ? ordered_json(*found) : ordered_json(), expected) << to_text(rule) << ", environment " << test;
        ++cells;
        missing += expected.is_null();
      }
  }
  EXPECT_EQ(cells, 288);
  EXPECT_GT(missing, 0);
}

// Runs of two models are never chosen between: they are two rows.
TEST(DgTable, G47_EachModelHasARow) {
  std::vector<DgResult> results;
  for (const auto& [model, accuracy] : {std::pair{"vit", 0.5}, std::pair{"gmoe", 0.75}})
    for (int64_t t = 0; t < 2; ++t)
      results.push_back(dg_result({{{"args",
                                     {{"dataset", "PACS"},
                                      {"algorithm", "erm"},
                                      {"model", model},
                                      {"test_envs", {t}},
                                      {"trial_seed", 0},
                                      {"hparams_seed", 0}}},
                                    {"step", 0},
                                    {"env0_in_acc", accuracy},
                                    {"env0_out_acc", accuracy},
                                    {"env1_in_acc", accuracy},
                                    {"env1_out_acc", accuracy}}}));
  const std::vector<DgTable> tables = dg_tables(results);
  ASSERT_EQ(tables.front().rows.size(), 2u);
  EXPECT_EQ(tables.front().rows[0].algorithm, "erm (gmoe)");
  EXPECT_EQ(tables.front().rows[0].cells.back()->mean, 75);
  EXPECT_EQ(tables.front().rows[1].algorithm, "erm (vit)");
  EXPECT_EQ(tables.front().rows[1].cells.back()->mean, 50);
}

// Trials 80 and 86 %: mean 83, population deviation 3, over sqrt(2): 2.12.
TEST(DgTable, G45_MeansAndErrorsInEveryFormat) {
  EXPECT_EQ(to_text(mean_and_error({80, 86})), "83.0 +/- 2.1");
  std::vector<DgResult> runs;
  for (int64_t trial = 0; trial < 2; ++trial)
    for (int64_t t = 0; t < 3; ++t) {
      const double accuracy = trial == 0 ? 0.80 : 0.86;
      runs.push_back(run({t}, 0, {{accuracy, accuracy, accuracy}}, {{.5, .5, .5}}, trial));
    }
  const std::vector<DgTable> tables = dg_tables(runs);
  ASSERT_EQ(tables.size(), 2u);  // no pairs, so no leave-one-domain-out
  EXPECT_EQ(tables[0].columns, (std::vector<std::string>{"0", "1", "2", "Avg"}));
  EXPECT_NE(
      formatted(tables, TableFormat::text).find("| erm | 83.0 +/- 2.1 | 83.0 +/- 2.1 | 83.0 +/- 2.1 | 83.0 +/- 2.1 |"),
      std::string::npos);
  EXPECT_NE(formatted(tables, TableFormat::latex).find("erm & 83.0 $\\pm$ 2.1 &"), std::string::npos);
  EXPECT_NE(formatted(tables, TableFormat::csv).find("toy,oracle,erm,Avg,83,2.1213"), std::string::npos);
  EXPECT_NE(formatted(tables, TableFormat::html).find("<td>83.0 +/- 2.1</td>"), std::string::npos);
  EXPECT_THROW(table_format("pdf"), UsageError);
}

// An environment that no run has tested leaves its cell and the average open.
TEST(DgTable, MissingRunsStayOpen) {
  const std::vector<DgTable> tables = dg_tables({run({0}, 0, {{.5, .5, .5}}, {{.5, .5, .5}})});
  EXPECT_NE(formatted(tables, TableFormat::text).find("| erm | 50.0 +/- 0.0 |  |  |  |"), std::string::npos);
}

// Section 6.5: from the accuracies of table 3.
TEST(DgTable, G46_RecomputesTheGainsOfTheSingleSourceTable) {
  const auto& rows = published_single_source();
  const auto gain = [&](size_t row) { return single_source_gain(rows[row].accuracy, rows[0].accuracy, 2); };
  EXPECT_NEAR(100 * gain(1).source, 1.1, 0.05);
  EXPECT_NEAR(100 * gain(2).source, 10.0, 0.05);
  EXPECT_NEAR(100 * gain(3).source, 10.5, 0.05);
  EXPECT_NEAR(100 * gain(1).others, 12.36, 0.005);
  EXPECT_NEAR(100 * gain(2).others, 38.23, 0.005);
  EXPECT_NEAR(100 * gain(3).others, 42.30, 0.005);
  EXPECT_NEAR(100 * gain(1).mean_of_others, 6.3, 0.05);
  EXPECT_NEAR(100 * gain(2).mean_of_others, 16.5, 0.05);
  EXPECT_NEAR(100 * gain(3).mean_of_others, 18.2, 0.05);
}

// The averages over five datasets of section 6.3.
TEST(DgTable, G48_PublishedNumbersHaveTheirSources) {
  const auto average = [](const std::string& algorithm) {
    double sum = 0;
    for (const PublishedResult& result : published_results())
      if (result.rule == SelectionRule::training_domains && result.algorithm == algorithm &&
          result.source == "Li et al. 2023, table 1" && result.dataset != "sviro" &&
          !result.dataset.starts_with("wilds_"))
        sum += result.mean / 5;
    return sum;
  };
  EXPECT_NEAR(average("ERM (ResNet-50)"), 63.8, 0.05);
  EXPECT_NEAR(average("ERM (ViT-S/16)"), 65.5, 0.05);
  EXPECT_NEAR(average("ERM (GMoE-S/16)"), 67.9, 0.05);
  EXPECT_NEAR(average("SWAD (ResNet-50)"), 66.9, 0.05);
  for (const PublishedResult& result : published_results()) EXPECT_FALSE(result.source.empty());
  // Table 2 (section 6.4), DomainBed's own DANN (6.3), errors of leave-one-out and the first preprint (6.6).
  const auto published = [](SelectionRule rule, const std::string& dataset, const std::string& label) {
    for (const PublishedResult& result : published_results())
      if (result.rule == rule && result.dataset == dataset && label == result.algorithm + ", " + result.source)
        return to_text(MeanAndError{result.mean, result.error});
    return std::string();
  };
  const SelectionRule validated = SelectionRule::training_domains, left_out = SelectionRule::leave_one_domain_out;
  EXPECT_EQ(published(validated, "domain_net", "Fish (GMoE-S/16), Li et al. 2023, table 2"), "48.8");
  EXPECT_EQ(published(validated, "domain_net", "SWAD (GMoE-S/16), Li et al. 2023, table 2"), "49.6");
  const std::string dann = "DANN (ResNet-50), Gulrajani and Lopez-Paz 2021";
  EXPECT_EQ(published(validated, "office_home", dann), "65.9 +/- 0.6");
  EXPECT_EQ(published(validated, "domain_net", dann), "38.3 +/- 0.1");
  EXPECT_EQ(published(left_out, "terra_incognita", "ERM (ResNet-50), Gulrajani and Lopez-Paz 2021"), "41.4 +/- 1.4");
  EXPECT_EQ(published(left_out, "pacs", "ERM (ViT-S/16), Li et al. 2022, first preprint"), "86.6 +/- 0.1");
  EXPECT_EQ(published(left_out, "domain_net", "ERM (SF-MoE), Li et al. 2022, first preprint"), "47.8 +/- 0.2");
  EXPECT_EQ(published(validated, "terra_incognita", "ERM (SF-MoE), Li et al. 2022, first preprint"), "46.3");

  DgResult mine = run({0}, 0, {{.5, .5}}, {{.5, .5}});
  mine.name.dataset = "coloredmnist";
  std::vector<DgTable> tables = dg_tables({mine});
  add_published(tables);
  const std::string text = formatted(tables, TableFormat::text);
  EXPECT_NE(text.find("| ERM (MNIST CNN), Gulrajani and Lopez-Paz 2021 |  |  | 51.5 |"), std::string::npos) << text;
}

// The layout of table 1: a column per dataset, own rows beside published ones, and a mean only where none is missing.
TEST(DgTable, G47_AveragesOfDatasetsBesidePublishedOnes) {
  std::vector<DgResult> results;
  for (const char* dataset : {"pacs", "vlcs"})
    for (int64_t t = 0; t < 2; ++t) {
      results.push_back(run({t}, 0, {{.6, .8}}, {{.5, .5}}));
      results.back().name.dataset = dataset;
    }
  results.push_back(results.front());
  results.back().name.algorithm = "irm";  // on one dataset, with one environment
  std::vector<DgTable> tables = average_tables(dg_tables(results));
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].columns, (std::vector<std::string>{"PACS", "VLCS", "Avg"}));
  add_published(tables);
  const std::string text = formatted(tables, TableFormat::text);
  EXPECT_NE(text.find("averages, training-domain validation"), std::string::npos) << text;
  EXPECT_NE(text.find("| erm | 70.0 +/- 0.0 | 70.0 +/- 0.0 | 70.0 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| irm |  |  |  |"), std::string::npos) << text;
  EXPECT_NE(text.find("| ERM (GMoE-S/16), Li et al. 2023, table 1 | 88.1 +/- 0.1 | 80.2 +/- 0.2 | 84.2 |"),
            std::string::npos)
      << text;
  EXPECT_TRUE(average_tables(dg_tables(hand_made())).empty());
}

// A line of DomainBed's own log, shortened.
TEST(DgResults, ReadsDomainBedsOwnFolders) {
  const TemporaryFolder folder;
  folder.write(
      "a/results.jsonl",
      R"({"args": {"algorithm": "ERM", "dataset": "RotatedMNIST", "hparams_seed": 2, "test_envs": [1], )"
      R"("trial_seed": 1, "output_dir": "x"}, "env0_in_acc": 0.5, "env0_out_acc": 0.25, "env1_in_acc": 0.75, )"
      R"("env1_out_acc": 1.0, "epoch": 0.3, "hparams": {"lr": 0.001}, "loss": 1.5, "mem_gb": 0.1, "step": 300})"
      "\n");
  folder.write("b/results.jsonl", "{\"args\": 1}\n");
  folder.write("c/results.jsonl", "not JSON\n");
  std::vector<std::string> warnings;
  const std::vector<DgResult> results = read_dg_results(folder.path(), warnings);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].name.dataset, "rotatedmnist");
  EXPECT_EQ(results[0].name.algorithm, "ERM");
  EXPECT_EQ(results[0].name.test_envs, (std::vector<int64_t>{1}));
  EXPECT_EQ(results[0].evaluations[0].in, (std::vector<double>{0.5, 0.75}));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("b/results.jsonl is left out: a line has no \"dataset\""), std::string::npos)
      << warnings[1];
  EXPECT_NE(warnings[1].find("line 1 is not a JSON object"), std::string::npos) << warnings[0];
}

TEST(DgResults, RefusesWhatCannotBe) {
  const ordered_json args = {
      {"dataset", "toy"}, {"algorithm", "erm"}, {"test_envs", {0}}, {"trial_seed", 0}, {"hparams_seed", 0}};
  const auto line = [&](const ordered_json& more) {
    ordered_json object = {{"args", args}, {"step", 0}, {"env0_in_acc", 0.5}, {"env0_out_acc", 0.5}};
    object.update(more);
    return object;
  };
  EXPECT_NO_THROW(dg_result({line(ordered_json::object())}));
  for (const ordered_json& more : {ordered_json{{"env0_in_acc", 1.5}}, ordered_json{{"env0_in_acc", nullptr}},
                                   ordered_json{{"step", "x"}}, ordered_json{{"env1_in_acc", 0.5}}})
    EXPECT_THROW(dg_result({line(more)}), Error) << more.dump();
  EXPECT_THROW(dg_result({line(ordered_json::object()), line({{"env1_in_acc", 0.5}, {"env1_out_acc", 0.5}})}), Error);
  EXPECT_THROW(dg_result({}), Error);
  const TemporaryFolder empty;
  std::vector<std::string> warnings;
  EXPECT_THROW(read_dg_results(empty.path(), warnings), Error);
}

}  // namespace sparsight::selection_test
