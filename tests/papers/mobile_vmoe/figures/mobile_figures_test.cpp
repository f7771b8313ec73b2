// The figures on Mobile V-MoE: their rows, verdicts, charts, and a training that goes on after an interrupt.
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "sparsight/core/interrupt.h"
#include "sparsight/papers/mobile_vmoe/experiments/class_groups.h"
#include "sparsight/papers/mobile_vmoe/figures/paper_sizes.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/result_charts.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/run_figure.h"
#include "sparsight/reproduce/train_job.h"
#include "tests/papers/claim_tables.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::mobile_vmoe::mobile_figures_test {
namespace {

namespace fs = std::filesystem;

FigureOutcome smoke(const char* name, const std::string& folder, const Json& settings = Json::object()) {
  FigureRequest request;
  request.run = {Scale::smoke, "", folder};
  request.run.settings = settings;
  FigureOutcome outcome = run_figure(find_figure(name), request);
  for (const FailedJob& job : outcome.failed) ADD_FAILURE() << failure_text(job);
  return outcome;
}

// The verdict on the claim whose text contains `part`, of jobs with these results at scale paper.
std::string verdict(const char* name, const std::string& part, const testing::ClaimResult& result) {
  const Figure& figure = find_figure(name);
  const FigureRun run{Scale::paper, "", "nowhere"};
  const std::vector<Json> jobs = figure.jobs(run);
  std::vector<Json> results;
  for (const Json& job : jobs) results.push_back(result(job));
  for (const Claim& claim : judged_claims(figure, make_table(figure, jobs, results, false), run))
    if (claim.text.find(part) != std::string::npos) return verdict_text(claim);
  return "no such claim";
}

size_t kept_trainings(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") count += 1;
  return count;
}

TEST(MobileFigures, M41_OneCommandEachRegeneratesTheTables) {
  for (const char* name : {"sizes", "experts", "layers", "k", "routing", "lambda"})
    EXPECT_EQ(find_figure(std::string("mobile_vmoe/") + name).name, std::string("mobile_vmoe/") + name);
  const auto values = [](const char* name, const char* axis) {
    std::vector<Json> found;
    for (const Json& job : find_figure(name).jobs({Scale::paper, "", "nowhere"}))
      if (std::find(found.begin(), found.end(), job.at(axis)) == found.end()) found.push_back(job.at(axis));
    return Json(found);
  };
  EXPECT_EQ(values("mobile_vmoe/sizes", "size").size(), 12u);
  EXPECT_EQ(values("mobile_vmoe/experts", "E"), (Json{5, 7, 10, 15, 20}));
  EXPECT_EQ(values("mobile_vmoe/layers", "L"), (Json{1, 2, 4, 6, 8}));
  EXPECT_EQ(values("mobile_vmoe/k", "k"), (Json{1, 2, 3, 5, 10}));
  EXPECT_EQ(values("mobile_vmoe/routing", "routing").size(), 5u);
  EXPECT_EQ(values("mobile_vmoe/lambda", "lambda"), (Json{0.0, 0.1, 0.3, 1.0}));
}

// The paper's gains, which its text names: least 1.60 and most 4.66.
TEST(MobileFigures, M41_ThePapersNumbersAreBeside) {
  std::vector<double> gains;
  for (const PaperSize& size : paper_sizes()) gains.push_back(size.moe - size.dense);
  EXPECT_NEAR(*std::min_element(gains.begin(), gains.end()), 1.60, 1e-9);
  EXPECT_NEAR(*std::max_element(gains.begin(), gains.end()), 4.66, 1e-9);
  const Figure& figure = find_figure("mobile_vmoe/sizes");
  ASSERT_EQ(figure.paper.size(), 24u);
  EXPECT_EQ(figure.paper.back().at("accuracy"), 41.30);
  EXPECT_EQ(figure.paper.back().at("mflop"), 54);
}

// Accuracy against operations on a logarithmic axis: two curves, each point with the name of its size.
TEST(MobileFigures, M41_TheSizesAreDrawnAgainstOperations) {
  const testing::TemporaryFolder folder;
  const std::vector<Chart> charts = result_charts(smoke("mobile_vmoe/sizes", folder.path("run")));
  ASSERT_EQ(charts.size(), 1u);
  std::set<std::string> curves, labels;
  for (const Json& row : charts[0].spec.at("data").at("values")) {
    EXPECT_GT(row.at("x").get<double>(), 0);
    curves.insert(row.at("series").get<std::string>());
    labels.insert(row.at("label").get<std::string>());
  }
  EXPECT_EQ(curves, (std::set<std::string>{"Mobile V-MoE", "dense"}));
  EXPECT_EQ(labels, (std::set<std::string>{"2x16", "3x16"}));
  std::set<std::string> marks;
  for (const Json& layer : charts[0].spec.at("layer")) {
    if (layer.at("encoding").contains("x")) {
      EXPECT_EQ(layer.at("encoding").at("x").at("scale").at("type"), "log");
      EXPECT_EQ(layer.at("encoding").at("x").at("title"), "MFLOP of an image");
    }
    marks.insert(layer.at("mark").at("type").get<std::string>());
  }
  EXPECT_TRUE(marks.contains("line") && marks.contains("text"));
}

TEST(MobileFigures, M42_EveryRowReportsRoutingAndCost) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = smoke("mobile_vmoe/routing", folder.path("run"));
  ASSERT_EQ(outcome.table.rows.size(), 5u);
  const auto at = [&](const char* routing, const char* measure) {
    return outcome.table.mean({{"routing", routing}}, measure);
  };
  for (const char* routing : {kImages, kRandom, kSemantic, kTokens})
    for (const char* measure :
         {"accuracy", "difference", "entropy", "busiest", "unused", "distinct", "touched", "mflop"})
      EXPECT_TRUE(at(routing, measure)) << routing << ": " << measure;
  for (const char* routing : {kRandom, kSemantic}) EXPECT_TRUE(at(routing, "router_accuracy")) << routing;
  for (const char* routing : {kDense, kImages, kTokens}) EXPECT_FALSE(at(routing, "router_accuracy")) << routing;
  // M43: exactly k experts for an image of one decision; tokens spread over more.
  for (const char* routing : {kImages, kRandom, kSemantic}) {
    EXPECT_EQ(at(routing, "distinct"), 2) << routing;
    EXPECT_EQ(at(routing, "distinct_most"), 2) << routing;
  }
  EXPECT_GT(*at(kTokens, "distinct"), 2);
  EXPECT_GT(*at(kTokens, "touched"), *at(kSemantic, "touched"));
  for (const FinishedJob& job : outcome.finished)
    EXPECT_EQ(job.result.at("usage").is_null(), job.settings.at("routing") == kDense);
}

// 0.3 and 0 with their dense baseline are three trainings, and the second figure adds none for its L = 2 at E = 4.
TEST(MobileFigures, RowsThatFiguresShareAreTrainedOnce) {
  const testing::TemporaryFolder folder;
  const std::string models = folder.path("mobile_vmoe/models");
  smoke("mobile_vmoe/lambda", folder.path("mobile_vmoe/lambda-smoke"));
  EXPECT_EQ(kept_trainings(models), 3u);
  smoke("mobile_vmoe/layers", folder.path("mobile_vmoe/layers-smoke"), {{"numbers", {2}}});
  EXPECT_EQ(kept_trainings(models), 3u);
}

bool is_training_in(const std::string& models) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(models, error)) {
    const fs::path metrics = entry.path() / "training/metrics.jsonl";
    if (fs::exists(metrics, error) && fs::file_size(metrics, error) > 0) return true;
  }
  return false;
}

// Interrupted after its first epoch, it goes on where it was, here for another figure of the run, and ends with the
// same numbers as one that was not; what it needed on the way is gone.
TEST(MobileFigures, AnInterruptedTrainingGoesOn) {
  const testing::TemporaryFolder folder;
  const FigureRun whole{Scale::smoke, "", folder.path("whole")}, cut{Scale::smoke, "", folder.path("cut")};
  MobileOptions options = mobile_options(Scale::smoke);
  options.epochs = 40;
  const MobileModel dense = mobile_model(options, kDense);
  const Json expected = measure_model(dense, options, whole, 0);
  std::atomic<bool> over{false};
  std::thread user([&] {
    while (!over && !is_training_in(folder.path("cut/models"))) usleep(200);
    set_interrupted(true);
  });
  const std::string message = testing::error_text([&] { measure_model(dense, options, cut, 0); });
  over = true;
  user.join();
  set_interrupted(false);
  EXPECT_TRUE(message.starts_with("interrupted after step ")) << message;
  EXPECT_EQ(kept_trainings(folder.path("cut/models")), 0u);
  EXPECT_TRUE(is_training_in(folder.path("cut/models")));
  const Json measured = measure_model(dense, options, cut, 0);
  EXPECT_EQ(measured.at("accuracy"), expected.at("accuracy"));
  EXPECT_EQ(measured.at("train_accuracy"), expected.at("train_accuracy"));
  EXPECT_EQ(kept_trainings(folder.path("cut/models")), 1u);
  EXPECT_FALSE(is_training_in(folder.path("cut/models")));
  EXPECT_EQ(measure_model(dense, options, cut, 0), measured) << "not trained again";
}

TEST(MobileFigures, LayersLeaveOneForTheRouter) {
  FigureRun run{Scale::smoke, "", "nowhere"};
  run.settings = {{"numbers", {1, 3}}};
  EXPECT_NE(testing::error_text<UsageError>([&] { find_figure("mobile_vmoe/layers").jobs(run); }).find("at most 2"),
            std::string::npos);
}

// Three seeds that agree decide; seeds that disagree leave the claim open.
testing::ClaimResult router_right(double first, double others) {
  return [=](const Json& job) {
    const double right = job.at("seed") == 0 ? first : others;
    return Json{{"accuracy", 50}, {"router_accuracy", right}, {"entropy", 1}, {"busiest", 10}, {"unused", 0}};
  };
}

TEST(MobileFigures, M37_TheGuidedRouterIsJudgedAgainst95Percent) {
  const auto judged = [](double first, double others) {
    return verdict("mobile_vmoe/lambda", "above 95 %", router_right(first, others));
  };
  EXPECT_EQ(judged(97, 97.1), "holds");
  EXPECT_EQ(judged(59, 59.5), "does not hold");
  EXPECT_EQ(judged(90, 99), "undecided at 3 seeds");
}

TEST(MobileFigures, M38_ClaimsCompareWithDenseAndWithRandomSuperClasses) {
  const auto routing = [](double semantic, double random) -> testing::ClaimResult {
    return [=](const Json& job) {
      const std::string routing = job.at("routing");
      return Json{{"accuracy", routing == kSemantic ? semantic : routing == kRandom ? random : 50.0}};
    };
  };
  const char* const above_dense = "better than the dense model";
  const char* const random = "at least as good as random";
  EXPECT_EQ(verdict("mobile_vmoe/routing", above_dense, routing(52, 51)), "holds");
  EXPECT_EQ(verdict("mobile_vmoe/routing", above_dense, routing(49, 51)), "does not hold");
  EXPECT_EQ(verdict("mobile_vmoe/routing", random, routing(52, 52)), "holds");
  EXPECT_EQ(verdict("mobile_vmoe/routing", random, routing(51, 52)), "does not hold");
  const testing::ClaimResult mixed = [](const Json& job) {
    const double lead = job.at("seed") == 0 ? -3 : 2;
    return Json{{"accuracy", job.at("routing") == kSemantic ? 50 + lead : 50.0}};
  };
  EXPECT_EQ(verdict("mobile_vmoe/routing", above_dense, mixed), "undecided at 3 seeds");
}

// Three blocks of width 32 find four groups in seconds, and use every expert. The 95 % of the item are of a 6x64, which
// the figure judges; this small one has 93 % after 600 steps, where chance is 25 %.
TEST(MobileTraining, M37_GuidedTrainingOnASmallHierarchyFindsTheGroups) {
  const testing::TemporaryFolder folder;
  const FigureRun run{Scale::smoke, "", folder.path("run")};
  MobileOptions options = mobile_options(Scale::smoke);
  options.size = "3x32", options.train_images = 3200, options.test_images = 400, options.epochs = 12;
  options.lr = 0.003;
  const Json measured = measure_model(mobile_model(options, kSemantic), options, run, 0);
  EXPECT_GT(measured.at("router_accuracy").get<double>(), 95);
  EXPECT_EQ(measured.at("unused"), 0);
}

}  // namespace
}  // namespace sparsight::mobile_vmoe::mobile_figures_test
