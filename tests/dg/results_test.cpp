#include "sparsight/dg/results.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/dg/result_table.h"
#include "sparsight/dg/single_source.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::dg_results_test {
namespace {

using nlohmann::ordered_json;
using testing::TemporaryFolder;

constexpr size_t kMost = size_t{1} << 22;

// A line of two environments whose accuracies are all `accuracy`.
ordered_json line(double accuracy, const ordered_json& more = ordered_json::object(), int64_t step = 0,
                  const ordered_json& top = ordered_json::object()) {
  ordered_json args = {{"dataset", "toy"}, {"algorithm", "ERM"}, {"model", "vit"},
                       {"test_envs", {0}}, {"trial_seed", 0},    {"hparams_seed", 0}};
  if (more.is_object()) args.update(more);
  ordered_json all = {{"args", args}, {"step", step}};
  for (const char* key : {"env0_in_acc", "env0_out_acc", "env1_in_acc", "env1_out_acc"}) all[key] = accuracy;
  all.update(top);
  return all;
}

std::vector<DgResult> results_of(const std::vector<ordered_json>& lines) {
  std::vector<DgLog> logs;
  for (const ordered_json& one : lines) logs.push_back({"log", {one}});
  std::vector<std::string> warnings;
  std::vector<DgResult> results = dg_results_of(logs, warnings);
  EXPECT_TRUE(warnings.empty());
  return results;
}

// The lines of the committed sweep in DomainBed's folders, one for each run.
std::string domainbed_folders(const TemporaryFolder& folder) {
  std::istringstream text(read_file(test::source_path("tests/golden/domainbed/sweep.jsonl"), kMost));
  std::map<std::string, std::string> files;
  for (std::string one; std::getline(text, one);)
    files[ordered_json::parse(one).at("args").at("output_dir").get<std::string>() + "/results.jsonl"] += one + "\n";
  for (const auto& [name, lines] : files) folder.write(name, lines);
  return folder.path("sweep");
}

}  // namespace

// tests/golden/domainbed/make_sweep.py computes these tables with NumPy.
TEST(DgResults, G44_TablesOfDomainBedsFoldersAreThoseOfAnIndependentProgram) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  const std::vector<DgTable> tables = dg_tables(read_dg_results(domainbed_folders(folder), warnings));
  EXPECT_TRUE(warnings.empty());
  const ordered_json expected =
      ordered_json::parse(read_file(test::source_path("tests/golden/domainbed/sweep_tables.json"), kMost));
  ASSERT_EQ(tables.size(), 3u);
  for (const DgTable& table : tables) {
    EXPECT_EQ(table.columns, expected.at("columns").get<std::vector<std::string>>());
    const ordered_json& rows = expected.at(to_text(table.rule));
    ASSERT_EQ(table.rows.size(), rows.size()) << to_text(table.rule);
    for (const DgTable::Row& row : table.rows)
      for (size_t c = 0; c < row.cells.size(); ++c)
        EXPECT_EQ(to_text(*row.cells[c]), rows.at(row.algorithm).at(c)) << to_text(table.rule) << row.algorithm << c;
  }
  EXPECT_EQ(
      formatted(tables, TableFormat::text).find("VLCS, training-domain validation\n| algorithm | C | L | S | V |"), 0u);
}

// One file with the lines of all runs is the same results.
TEST(DgResults, OneFileOfManyRunsIsTheSameAsTheirFolders) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  const auto tables = [&](const std::string& path) {
    return formatted(dg_tables(read_dg_results(path, warnings)), TableFormat::csv);
  };
  EXPECT_EQ(tables(test::source_path("tests/golden/domainbed/sweep.jsonl")), tables(domainbed_folders(folder)));
  EXPECT_TRUE(warnings.empty());
}

// An average that training ends with: only it counts, though an evaluation before it has a higher validation accuracy.
TEST(DgResults, OnlyTheResultOfAnAlgorithmThatHasOneIsChosen) {
  const std::vector<ordered_json> lines{line(.5), line(.9, {}, 300), line(.7, {}, 300, {{"result_weights", "swad"}})};
  const DgResult run = dg_result(lines);
  ASSERT_EQ(run.evaluations.size(), 1u);
  for (const SelectionRule rule : {SelectionRule::training_domains, SelectionRule::oracle})
    EXPECT_EQ(selected_accuracy({run}, 0, rule), 0.7);
  // Runs of which one ended early are compared by their results, whatever their steps.
  std::vector<DgResult> runs{run};
  runs.push_back(dg_result({line(.6, {{"test_envs", {0, 1}}}, 900, {{"result_weights", "swad"}})}));
  EXPECT_EQ(selected_accuracy(runs, 0, SelectionRule::leave_one_domain_out), 0.7);
}

// Nothing is chosen among, or averaged over, runs that were trained or tested otherwise.
TEST(DgResults, RunsOfOtherSettingsOrImagesAreApart) {
  const auto settings = [](double lr) {
    return ordered_json{{"settings", {{"optimizer.lr", lr}, {"loader.batch", 8}}}};
  };
  const std::vector<DgResult> two = results_of({line(.5, settings(0.01)), line(.6, settings(0.02))});
  EXPECT_EQ(two[0].name.algorithm, "ERM (vit, optimizer.lr=0.01)");
  EXPECT_EQ(two[1].name.algorithm, "ERM (vit, optimizer.lr=0.02)");
  EXPECT_EQ(dg_tables(two).front().rows.size(), 2u);
  const std::vector<DgResult> same = results_of({line(.5, settings(0.01)), line(.6, settings(0.01))});
  EXPECT_EQ(same[1].name.algorithm, "ERM (vit)");
  const std::vector<DgResult> added = results_of({line(.5, settings(0.01)), line(.6)});
  EXPECT_EQ(added[0].name.algorithm, "ERM (vit, optimizer.lr=0.01, loader.batch=8)");
  EXPECT_EQ(added[1].name.algorithm, "ERM (vit)");
  const std::vector<DgResult> data =
      results_of({line(.5, {{"data", "0123456789abcdef"}}), line(.6, {{"data", "ffff456789abcdef"}})});
  EXPECT_EQ(data[0].name.dataset, "toy (data 01234567)");
  EXPECT_EQ(dg_tables(data).size(), 4u) << "two rules of two datasets";
}

TEST(DgResults, LinesForDomainBedHaveItsNameOfTheDatasetAndTheResultAlone) {
  const auto line = [](int64_t step) {
    return ordered_json{{"args", {{"dataset", "pacs"}, {"algorithm", "SWAD"}}}, {"step", step}};
  };
  DgLog log{"results.jsonl", {line(0), line(300)}};
  ASSERT_EQ(domainbed_lines(log).size(), 2u);
  EXPECT_EQ(domainbed_lines(log)[0].at("args").at("dataset"), "PACS");
  log.lines.back()["result_weights"] = "average";
  ASSERT_EQ(domainbed_lines(log).size(), 1u);
  EXPECT_EQ(domainbed_lines(log)[0].at("step"), 300);
}

// Columns have the names of the log where DomainBed knows no such dataset.
TEST(DgResults, G45_TablesNameDatasetsAndEnvironments) {
  const ordered_json names = {{"environments", {"drawn", "seen"}}};
  std::string text = formatted(dg_tables(results_of({line(.5, names)})), TableFormat::text);
  EXPECT_NE(text.find("| algorithm | drawn | seen | Avg |\n|:--|--:|--:|--:|\n| ERM (vit) | 50.0 +/- 0.0 |  |  |"),
            std::string::npos)
      << text;
  EXPECT_EQ(dataset_title("rotatedmnist"), "RotatedMNIST");
  EXPECT_EQ(dataset_title("terra_incognita (data 01234567)"), "TerraIncognita (data 01234567)");
  EXPECT_EQ(dataset_title("toy"), "toy");
  EXPECT_EQ(environment_titles("PACS", {}, 4), (std::vector<std::string>{"A", "C", "P", "S"}));
  EXPECT_EQ(environment_titles("wildsfmow", {}, 6)[5], "region_5");
  EXPECT_EQ(environment_titles("toy", {}, 2), (std::vector<std::string>{"0", "1"}));
}

// Of three environments, pairs are all but one: with runs that test one alone they are of a usual sweep. Of two, only
// the runs themselves tell.
TEST(DgResults, G46_ASingleSourceIsToldFromAUsualSweep) {
  const ordered_json third = {{"env2_in_acc", .5}, {"env2_out_acc", .5}};
  const auto pair = line(.5, {{"test_envs", {0, 1}}}, 0, third), alone = line(.5, {}, 0, third);
  EXPECT_EQ(single_source_tables(results_of({pair})).size(), 1u);
  EXPECT_TRUE(single_source_tables(results_of({pair, alone})).empty());
  const std::vector<DgResult> source = results_of({line(.5, {{"single_source", true}})});
  EXPECT_EQ(single_source_tables(source).size(), 1u);
  EXPECT_TRUE(dg_tables(source).empty());
  EXPECT_TRUE(single_source_tables(results_of({line(.5)})).empty());
}

TEST(DgResults, AFileWithoutEvaluationsIsNamed) {
  const TemporaryFolder folder;
  folder.write("a/results.jsonl", "");
  std::vector<std::string> warnings;
  EXPECT_TRUE(read_dg_logs(folder.path(), warnings).empty());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("a/results.jsonl is left out: there are no evaluations"), std::string::npos);
}

}  // namespace sparsight::dg_results_test
