#include "sparsight/dg/results/results.h"

#include <gtest/gtest.h>

#include <ctime>

#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/dg/single_source.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::dg_results_test {
namespace {

using nlohmann::ordered_json;
using testing::TemporaryFolder;

constexpr size_t kMax = size_t{1} << 22;

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

std::vector<DgResult> make_results(const std::vector<ordered_json>& lines) {
  std::vector<std::string> warnings;
  std::vector<DgResult> results;
  for (const ordered_json& one : lines)
    if (auto result = usable_dg_result({"log", {one}}, warnings)) results.push_back(std::move(*result));
  tell_apart(results);
  EXPECT_TRUE(warnings.empty());
  return results;
}

// The lines of the committed sweep in DomainBed's folders, one for each run.
std::string domainbed_folders(const TemporaryFolder& folder) {
  std::istringstream text(read_file(test::source_path("tests/golden/domainbed/sweep.jsonl"), kMax));
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
      ordered_json::parse(read_file(test::source_path("tests/golden/domainbed/sweep_tables.json"), kMax));
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
  const std::vector<DgResult> two = make_results({line(.5, settings(0.01)), line(.6, settings(0.02))});
  EXPECT_EQ(two[0].name.algorithm, "ERM (vit, optimizer.lr=0.01)");
  EXPECT_EQ(two[1].name.algorithm, "ERM (vit, optimizer.lr=0.02)");
  EXPECT_EQ(dg_tables(two).front().rows.size(), 2u);
  const std::vector<DgResult> same = make_results({line(.5, settings(0.01)), line(.6, settings(0.01))});
  EXPECT_EQ(same[1].name.algorithm, "ERM (vit)");
  const std::vector<DgResult> added = make_results({line(.5, settings(0.01)), line(.6)});
  EXPECT_EQ(added[0].name.algorithm, "ERM (vit, optimizer.lr=0.01, loader.batch=8)");
  EXPECT_EQ(added[1].name.algorithm, "ERM (vit)");
  const std::vector<DgResult> data =
      make_results({line(.5, {{"data", "0123456789abcdef"}}), line(.6, {{"data", "ffff456789abcdef"}})});
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
  std::string text = formatted(dg_tables(make_results({line(.5, names)})), TableFormat::text);
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

// Pairs of three environments are all but one: with runs that test one alone they are of a usual sweep. With two
// environments only the runs themselves tell.
TEST(DgResults, G46_ASingleSourceIsToldFromAUsualSweep) {
  const ordered_json third = {{"env2_in_acc", .5}, {"env2_out_acc", .5}};
  const auto pair = line(.5, {{"test_envs", {0, 1}}}, 0, third), alone = line(.5, {}, 0, third);
  EXPECT_EQ(single_source_tables(make_results({pair})).size(), 1u);
  EXPECT_TRUE(single_source_tables(make_results({pair, alone})).empty());
  const std::vector<DgResult> source = make_results({line(.5, {{"single_source", true}})});
  EXPECT_EQ(single_source_tables(source).size(), 1u);
  EXPECT_TRUE(dg_tables(source).empty());
  EXPECT_TRUE(single_source_tables(make_results({line(.5)})).empty());
}

TEST(DgResults, AFileWithoutEvaluationsIsNamed) {
  const TemporaryFolder folder;
  folder.write("a/results.jsonl", "");
  std::vector<std::string> warnings;
  EXPECT_TRUE(read_dg_results(folder.path(), warnings).empty());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("a/results.jsonl is left out: there are no evaluations"), std::string::npos);
}

// Numbers that no conversion to an integer has a meaning for, and those that cannot be what they are of.
TEST(DgResults, NumbersThatAreNoCountsOrAccuraciesAreRefused) {
  const auto refused = [](const ordered_json& one) { return testing::error_text([&] { dg_result({one}); }); };
  for (const char* key : {"trial_seed", "hparams_seed"})
    for (const ordered_json& value : {ordered_json(-1), ordered_json(0.5), ordered_json(1e300),
                                      ordered_json(18446744073709551615u), ordered_json(-1e300)})
      EXPECT_EQ(refused(line(.5, {{key, value}})),
                cat("\"", key, "\" must be a whole number of at least 0; got ", value.dump()));
  for (const ordered_json& value : {ordered_json(-1), ordered_json(0.5), ordered_json(1e300)}) {
    EXPECT_EQ(refused(line(.5, {}, 0, {{"step", value}})),
              "\"step\" must be a whole number of at least 0; got " + value.dump());
    EXPECT_EQ(refused(line(.5, {}, 0, {{"cost", {{"parameters", value}}}})),
              "\"parameters\" must be a whole number of at least 0; got " + value.dump());
    EXPECT_EQ(refused(line(.5, {{"test_envs", {0, value}}})),
              "\"test_envs\" must be a list of whole numbers of at least 0; it has " + value.dump());
  }
  EXPECT_EQ(refused(line(.5, {{"test_envs", {1, 1, 1}}})), "\"test_envs\" names 1 twice");
  for (const double value : {-0.1, 1.5, 1e300})
    EXPECT_EQ(refused(line(value)), "\"env0_in_acc\" must be an accuracy of 0 to 1");
  EXPECT_EQ(dg_result({line(.5, {}, 0, {{"step", 300.0}})}).evaluations.front().step, 300);
}

// 5,000 runs of one trial, and then 20 with 5,000 environments: looking for the runs of a rule among all others, or for
// a key among all others of a line, took half a minute. The time is the processor's.
TEST(DgResults, TablesOfThousandsOfRunsAndOfEnvironmentsAreLinear) {
  constexpr int64_t kMany = 5000, kEnvironments = 10;
  const auto evaluation = [](int64_t environments) {
    return DgEvaluation{0, std::vector<double>(static_cast<size_t>(environments), .5),
                        std::vector<double>(static_cast<size_t>(environments), .5)};
  };
  const std::clock_t begin = std::clock();
  std::vector<DgResult> runs;
  for (int64_t i = 0; i < kMany; ++i) {
    const int64_t pair = i % 55;  // of ten environments, each alone and each pair
    int64_t first = pair, second = pair;
    for (int64_t row = 0; pair >= kEnvironments && row < kEnvironments; ++row)
      for (int64_t column = row + 1, at = kEnvironments + row * (2 * kEnvironments - row - 1) / 2;
           column < kEnvironments; ++column, ++at)
        if (at == pair) first = row, second = column;
    DgResult run{{"toy", "erm", {first}, 0, i / 55}, {evaluation(kEnvironments)}};
    if (second != first) run.name.test_envs.push_back(second);
    run.settings = {{"optimizer.lr", i}};
    run.name.algorithm = "ERM";
    runs.push_back(run);
  }
  EXPECT_EQ(dg_tables(runs).size(), 3u) << "the three rules";
  tell_apart(runs);
  EXPECT_EQ(runs[7].name.algorithm, "ERM (optimizer.lr=7)");
  ordered_json wide = line(.5);
  for (int64_t e = 2; e < kMany; ++e) wide[cat("env", e, "_in_acc")] = wide[cat("env", e, "_out_acc")] = .5;
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 10);
  std::vector<DgResult> of_many;
  const std::clock_t read = std::clock();
  for (int64_t i = 0; i < 20; ++i) of_many.push_back(dg_result({wide}));
  EXPECT_EQ(dg_tables(of_many).front().columns.size(), static_cast<size_t>(kMany) + 1);
  EXPECT_LT(static_cast<double>(std::clock() - read) / CLOCKS_PER_SEC, 10);
}

// What a name must not do: end a cell or a row, begin a comment, or become a command, a link or emphasis.
TEST(DgResults, TablesEscapeForeignNames) {
  DgTable table{SelectionRule::oracle, "toy", {"x & y", "Avg"}, {}};
  table.rows.push_back({"50%_$a$ #1 {b}\\input|c* [l](u) <i>~^\n+1", "this run", {MeanAndError{50, 1}, std::nullopt}});
  const std::string latex = formatted({table}, TableFormat::latex);
  EXPECT_NE(latex.find("algorithm & x \\& y & Avg \\\\\n"), std::string::npos) << latex;
  EXPECT_NE(
      latex.find("50\\%\\_\\$a\\$ \\#1 \\{b\\}\\textbackslash{}input\\textbar{}c* [l](u) \\textless{}i\\textgreater{}"
                 "\\textasciitilde{}\\textasciicircum{}\\textbackslash{}x0a+1 & 50.0 $\\pm$ 1.0 &  \\\\\n"),
      std::string::npos)
      << latex;
  const std::string markdown = formatted({table}, TableFormat::markdown);
  EXPECT_NE(
      markdown.find("| 50%\\_\\$a\\$ \\#1 {b}\\\\input\\|c\\* \\[l\\](u) \\<i>\\~^\\\\x0a+1 | 50.0 +/- 1.0 |  |\n"),
      std::string::npos)
      << markdown;
  table.rows[0].algorithm = "ERM (mnist_cnn)";
  EXPECT_NE(formatted({table}, TableFormat::markdown).find("| ERM (mnist_cnn) |"), std::string::npos);
  EXPECT_NE(formatted({table}, TableFormat::latex).find("ERM (mnist\\_cnn) &"), std::string::npos);
}

}  // namespace sparsight::dg_results_test
