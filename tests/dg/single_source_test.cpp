#include "sparsight/dg/single_source.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::single_source_test {
namespace {

// Trained on environment 1 of three. out: of the steps 0, 300, ...
DgResult run(const std::string& algorithm, const std::vector<std::vector<double>>& out, int64_t hparams = 0,
             int64_t trial = 0) {
  DgResult result{{"toy", algorithm, {0, 2}, trial, hparams}, {}};
  for (size_t i = 0; i < out.size(); ++i)
    result.evaluations.push_back({static_cast<int64_t>(300 * i), std::vector<double>(3, 0.9), out[i]});
  return result;
}

}  // namespace

// The baseline's source is best (.8) at step 300 of hyper-parameters 1, which has .2 and .4. The other model has
// .88 on the source, .3 and .44: 10 % more on the source; 50 % and 10 % more on the others, 30 % in the mean; their
// means are .37 and .3, 23.3 % more.
TEST(SingleSource, G46_ItsTableOfOwnRuns) {
  std::vector<DgResult> results{run("erm (resnet50)", {{.9, .5, .9}, {.9, .7, .9}}),
                                run("erm (resnet50)", {{.9, .6, .9}, {.2, .8, .4}}, 1),
                                run("erm (gmoe)", {{.3, .88, .44}, {.9, .7, .9}})};
  const std::vector<DgTable> tables = single_source_tables(results);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].title, "toy, trained on environment 1 alone, gains over erm (resnet50)");
  EXPECT_EQ(tables[0].columns, (std::vector<std::string>{"0", "1 (source)", "2"}));
  ASSERT_EQ(tables[0].rows.size(), 2u);
  const DgTable::Row &gmoe = tables[0].rows[0], &resnet = tables[0].rows[1];
  EXPECT_NEAR(resnet.cells[0]->mean, 20, 1e-9);
  EXPECT_NEAR(resnet.cells[1]->mean, 80, 1e-9);
  EXPECT_TRUE(resnet.facts.empty());
  ASSERT_EQ(gmoe.facts.size(), 3u);
  EXPECT_EQ(gmoe.facts[0].text, "+10.0 %");
  EXPECT_EQ(gmoe.facts[1].text, "+30.0 %");
  EXPECT_EQ(gmoe.facts[2].text, "+23.3 %");
  EXPECT_EQ(single_source_tables(results, "erm (gmoe)")[0].rows[1].facts[0].text, "-9.1 %");
  const std::string message = testing::error_text([&] { single_source_tables(results, "erm (vit)"); });
  EXPECT_NE(message.find("its rows are erm (gmoe), erm (resnet50)"), std::string::npos) << message;
}

// Costs are columns after the gains, for the baseline too; of a row without any they are not available.
TEST(SingleSource, G46_CostsStandBesideTheGains) {
  std::vector<DgResult> results{run("erm (resnet50)", {{.9, .5, .9}}), run("erm (gmoe)", {{.3, .88, .44}})};
  EXPECT_EQ(single_source_tables(results)[0].fact_columns.size(), 3u) << "no run has them";
  results[1].cost = DgCost{33'814'363, 22'000'000, 4'638'000'000};
  const std::vector<DgTable> tables = single_source_tables(results);
  EXPECT_EQ(tables[0].fact_columns,
            (std::vector<std::string>{"gain on the source", "mean gain on the others", "gain of the others' mean",
                                      "parameters", "active parameters", "MACs"}));
  const DgTable::Row &gmoe = tables[0].rows[0], &resnet = tables[0].rows[1];
  ASSERT_EQ(gmoe.facts.size(), 6u);
  EXPECT_EQ(gmoe.facts[0].text, "+76.0 %");  // .88 / .5
  EXPECT_EQ(gmoe.facts[3].text, "33,814,363");
  EXPECT_EQ(gmoe.facts[5].text, "4,638,000,000");
  ASSERT_EQ(resnet.facts.size(), 6u);
  EXPECT_EQ(resnet.facts[0].text, "");
  EXPECT_EQ(resnet.facts[5].text, "");
  const std::string csv = formatted(tables, TableFormat::csv);
  EXPECT_NE(csv.find("erm (gmoe),MACs,4638000000,\n"), std::string::npos) << csv;
}

TEST(SingleSource, OtherRunsAreNotOfASingleSource) {
  DgResult usual = run("erm", {{.5, .5, .5}});
  usual.name.test_envs = {0};
  EXPECT_EQ(find_single_source(usual), -1);
  EXPECT_TRUE(single_source_tables({usual}).empty());
  usual.name.test_envs = {1, 2};
  EXPECT_EQ(find_single_source(usual), 0);
}

// Two environments: a run that tests one of them is of the usual tables.
TEST(SingleSource, TwoEnvironmentsAreNoSingleSource) {
  DgResult result{{"toy", "erm", {0}, 0, 0}, {{0, {.5, .5}, {.5, .5}}}};
  EXPECT_EQ(find_single_source(result), -1);
}

// Beside DomainNet's painting stand the rows of table 3, with the gains of the paper.
TEST(SingleSource, G48_PublishedRowsBesideOwnOnes) {
  DgResult mine{{"domainnet", "erm (gmoe)", {0, 1, 3, 4, 5}, 0, 0}, {{0, std::vector<double>(6, .5), {}}}};
  mine.evaluations[0].out = std::vector<double>(6, .5);
  const std::vector<DgTable> tables = single_source_tables({mine}, "", true);
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].rows.size(), 5u);
  EXPECT_EQ(tables[0].rows[4].algorithm, "ERM (GMoE-S/16), Li et al. 2023, table 3");
  EXPECT_EQ(tables[0].rows[4].facts[0].text, "+10.5 %");
  EXPECT_EQ(tables[0].rows[4].facts[1].text, "+42.3 %");
  EXPECT_EQ(tables[0].rows[4].facts[2].text, "+18.2 %");
  EXPECT_EQ(tables[0].fact_columns.back(), "MACs");
  EXPECT_EQ(tables[0].rows[4].facts.back().text, "4.8 G");
  EXPECT_EQ(tables[0].rows[1].facts.back().text, "4.1 G");
  EXPECT_EQ(tables[0].rows[4].facts[3].text, "") << "the paper gives no parameters";
  EXPECT_EQ(single_source_tables({mine})[0].rows.size(), 1u);
}

}  // namespace sparsight::single_source_test
