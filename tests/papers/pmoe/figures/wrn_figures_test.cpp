// Figures 10 to 16 and table 2: jobs, stored numbers, claims; and the smallest training run.
#include "sparsight/papers/pmoe/figures/wrn_figures.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "sparsight/papers/pmoe/figures/wrn_figure.h"
#include "tests/reproduce/curve_table.h"
#include "tests/support/program.h"

namespace sparsight::pmoe::wrn_figures_test {

// Two seeds around each accuracy.
ResultTable accuracy_table(const std::vector<std::tuple<std::string, int64_t, double>>& accuracies) {
  std::vector<testing::CurvePoint> points;
  for (const auto& [model, samples, accuracy] : accuracies)
    points.push_back({model, samples, {accuracy - 0.001, accuracy + 0.001}});
  return testing::curve_table(points);
}

TEST(WrnFigures, P32_P53_P54_P55_P57_P58_P59_P60_HaveThePapersSizesAndNumbers) {
  const struct {
    Figure figure;
    size_t points;  // of each curve
    std::vector<int64_t> samples;
    double first, last;  // accuracies of WRN and of WRN-pMoE
  } cases[] = {{fig10(), 5, {2000, 4000, 6000, 8000, 10000}, 81.0, 90.1},
               {fig11(), 5, {5000, 10000, 15000, 20000, 25000}, 60.0, 85.9},
               {fig12(), 4, {4000, 8000, 12000, 16000}, 74.7, 87.8},
               {fig14(), 4, {20000, 30000, 40000, 50000}, 74.9, 83.3},
               {fig15(), 5, {10000, 20000, 30000, 40000, 50000}, 41.7, 73.2},
               {fig16(), 5, {4000, 8000, 12000, 16000, 20000}, 50.4, 82.3}};
  for (const auto& c : cases) {
    ASSERT_EQ(c.figure.paper.size(), 2 * c.points) << c.figure.name;
    EXPECT_EQ(c.figure.paper.front().at("accuracy"), c.first) << c.figure.name;
    EXPECT_EQ(c.figure.paper.back().at("accuracy"), c.last) << c.figure.name;
    std::set<int64_t> samples, seeds;
    for (const Json& job : c.figure.jobs({Scale::paper, "", "/nowhere"})) {
      EXPECT_EQ(job.at("epochs"), 50);
      EXPECT_EQ(job.at("batch"), 128);
      EXPECT_EQ(job.at("widen"), 10);
      EXPECT_EQ(job.at("profile"), "paper");
      samples.insert(job.at("samples").get<int64_t>());
      seeds.insert(job.at("seed").get<int64_t>());
    }
    EXPECT_EQ(std::vector<int64_t>(samples.begin(), samples.end()), c.samples) << c.figure.name;
    EXPECT_EQ(seeds.size(), 5u) << c.figure.name;
    for (const Json& job : c.figure.jobs({Scale::small, "", "/nowhere"})) EXPECT_EQ(job.at("profile"), "reduced");
  }
}

TEST(WrnFigures, JobsDifferAndNameTheirAxesFirst) {
  for (const Figure& figure : wrn_figures())
    for (const Scale scale : {Scale::smoke, Scale::small, Scale::paper}) {
      std::set<std::string> seen;
      for (const Json& job : figure.jobs({scale, "", "/nowhere"})) {
        EXPECT_TRUE(seen.insert(job.dump()).second) << figure.name << " " << job;
        auto key = job.items().begin();
        for (const std::string& axis : figure.axes) EXPECT_EQ((key++).key(), axis) << figure.name;
      }
      EXPECT_FALSE(seen.empty()) << figure.name;
    }
}

TEST(WrnFigures, NameTheirDatasets) {
  const auto sets = [](const Figure& figure) {
    std::vector<std::string> names;
    for (const DataChoice& choice : figure.data) names.push_back(choice.set);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(sets(fig10()), Names{"celeba"});
  EXPECT_EQ(sets(fig14()), Names{"cifar10"});
  EXPECT_EQ(sets(fig15()), (Names{"cifar10", "plants"}));
  EXPECT_EQ(sets(table2()), Names{"celeba"});
  EXPECT_TRUE(table2().alone) << "it measures seconds";
}

// With the paper's own numbers of figure 10 both claims hold: 86.3 % is what WRN-pMoE has passed with 2000 of 10000.
TEST(WrnFigures, P56_Table2HasTimesStepsAndBothCountsOfOperations) {
  const Figure table = table2();
  std::set<std::string> measures;
  for (const Measure& measure : table.measures) measures.insert(measure.key);
  for (const char* key : {"seconds", "iterations", "counted_pflop", "timed_pflop"})
    EXPECT_TRUE(measures.contains(key)) << key;
  ASSERT_FALSE(table.paper.empty());
  for (const Json& row : table.paper) EXPECT_TRUE(row.contains("seconds") && row.contains("timed_pflop")) << row;
}

TEST(WrnFigures, P53_ThePapersNumbersFulfilItsClaims) {
  for (const Figure& figure : {fig10(), fig12(), fig14()}) {
    std::vector<std::tuple<std::string, int64_t, double>> numbers;
    for (const Json& row : figure.paper)
      numbers.emplace_back(row.at("model").get<std::string>(), row.at("samples").get<int64_t>(),
                           row.at("accuracy").get<double>());
    for (const Claim& claim : figure.claims(accuracy_table(numbers), {})) {
      ASSERT_TRUE(claim.holds.has_value()) << figure.name << ": " << claim.text;
      EXPECT_TRUE(*claim.holds) << figure.name << ": " << claim.text << ": " << claim.measured;
    }
  }
}

TEST(WrnFigures, ClaimsCanFailAndCanBeOpen) {
  const ResultTable against =
      accuracy_table({{kWrn, 100, 60}, {kWrn, 200, 70}, {kWrnPmoe, 100, 61}, {kWrnPmoe, 200, 69}});
  EXPECT_FALSE(*pmoe_above_wrn(against).holds);
  EXPECT_EQ(pmoe_above_wrn(against).measured.find("at least -1.0 points (at 200 samples)"), 0u);
  EXPECT_FALSE(*with_fewer_samples(against, 0.5).holds);
  // 65 % lies halfway between 61 and 69.
  const Claim half =
      with_fewer_samples(accuracy_table({{kWrn, 200, 65}, {kWrnPmoe, 100, 61}, {kWrnPmoe, 200, 69}}), 0.8);
  EXPECT_TRUE(*half.holds);
  EXPECT_EQ(half.measured.find("65.0 % with 150 of 200 samples: 75 %"), 0u) << half.measured;
  EXPECT_FALSE(pmoe_above_wrn(accuracy_table({{kWrn, 100, 60}})).holds.has_value());
  EXPECT_FALSE(larger_gap_than(against, "a", "b", "c").holds.has_value());
}

// Every figure runs in the registry's test; this one checks the files that a job leaves behind.
TEST(WrnFigures, P54_TellsTheWorstCombinationAndLeavesNoFolder) {
  const testing::TemporaryFolder folder;
  const FigureRun run{Scale::smoke, "", folder.path(), folder.path("job")};
  const Figure figure = fig11();
  const Json measured = figure.measure(figure.jobs(run).front(), run);
  EXPECT_LE(measured.at("worst_cell").get<double>(), measured.at("accuracy").get<double>());
  EXPECT_LE(measured.at("accuracy").get<double>(), 100);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("job")));
}

TEST(WrnFigures, ExpectedTimesGrowWithTheWork) {
  for (const Figure& figure : {fig11(), fig15(), table2()}) {
    const FigureRun paper{Scale::paper, "", "/nowhere"};
    Json job = figure.jobs(paper).front();
    const double seconds = figure.expected_seconds(job, paper);
    EXPECT_GT(seconds, 0) << figure.name;
    job["samples"] = 2 * job.at("samples").get<int64_t>();
    EXPECT_DOUBLE_EQ(figure.expected_seconds(job, paper), 2 * seconds) << figure.name;
    const FigureRun small{Scale::small, "", "/nowhere"};
    EXPECT_LT(figure.expected_seconds(figure.jobs(small).front(), small), seconds / 100) << figure.name;
  }
}

TEST(WrnFigures, P45_DrawsImagesOfEachDataset) {
  const testing::TemporaryFolder folder;
  const FigureRun run{Scale::smoke, "", folder.path()};
  const Figure figure = fig13();
  for (const Json& job : figure.jobs(run)) EXPECT_EQ(figure.measure(job, run).at("pictures"), 8);
  for (const char* name : {"CIFAR-10.png", "CIFAR-10_with_noise.png", "CIFAR-Vehicles.png"})
    EXPECT_GT(std::filesystem::file_size(folder.path() + "/" + name), 1000u) << name;
}

}  // namespace sparsight::pmoe::wrn_figures_test
