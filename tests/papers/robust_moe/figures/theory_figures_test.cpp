// The figures of the theory: rows whose values the specification gives, and the verdicts.
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

#include <nlohmann/json.hpp>

namespace sparsight::robust_moe::theory_figures_test {
namespace {

using testing::TemporaryFolder;

FigureRun make_run(Scale scale, const Json& settings) {
  FigureRun run{scale, "", "nowhere"};
  run.settings = settings;
  return run;
}

// What the job with these axes measures at scale small.
Json measured(const std::string& name, const Json& axes, const Json& settings = Json::object()) {
  const Figure& figure = find_figure(name);
  const FigureRun run = make_run(Scale::small, settings);
  for (const Json& job : figure.jobs(run)) {
    bool same = true;
    for (const auto& [key, value] : axes.items()) same = same && job.at(key) == value;
    if (same) return figure.measure(job, run);
  }
  throw std::runtime_error("no job of " + name + " has " + axes.dump());
}

double value(const Json& result, const char* key) { return result.at(key).get<double>(); }

using Verdicts = std::vector<std::optional<bool>>;

Verdicts verdicts(const std::string& name, const Json& settings = Json::object()) {
  const TemporaryFolder folder;
  FigureRequest request;
  request.run = make_run(Scale::small, settings);
  request.run.folder = folder.path("run");
  Verdicts holds;
  for (const Claim& claim : run_figure(find_figure(name), request).claims) holds.push_back(claim.holds);
  return holds;
}

}  // namespace

// Section 7.1, experiment 7.1a: a 301 x 301 grid over [-3,3]^2.
TEST(RobustTheoryFigures, A42_Lemma1OnTheGrid) {
  const Json found = measured("robust_moe/t1", {{"half width", 3.0}, {"temperature", 1.0}});
  EXPECT_NEAR(value(found, "gradient"), 1.569694, 1e-6);
  EXPECT_NEAR(value(found, "router"), .842682, 1e-6);
  EXPECT_NEAR(value(found, "bound"), 2.388846, 1e-6);
  EXPECT_EQ(value(found, "violations"), 0);
  EXPECT_EQ(verdicts("robust_moe/t1", {{"points", 61}}), (Verdicts{true, true}));
}

// Section 7.1, experiment 7.1b.
TEST(RobustTheoryFigures, A43_TheRoutersPartAgainstTheMargin) {
  const std::tuple<const char*, double, double> rows[] = {
      {"3 and -1", 0, 2.828427},  {"3 and -1", 1, 2.224410},  {"3 and -1", 2, 1.187867},  {"3 and -1", 4, 0.199831},
      {"3 and -1", 8, 0.003793},  {"1 and 0.9", 0, 0.070711}, {"1 and 0.9", 1, 0.055610}, {"1 and 0.9", 2, 0.029697},
      {"1 and 0.9", 4, 0.004996}, {"1 and 0.9", 8, 0.000095}};
  for (const auto& [outputs, margin, norm] : rows) {
    const Json found = measured("robust_moe/t2", {{"outputs", outputs}, {"margin", margin}});
    EXPECT_NEAR(value(found, "norm"), norm, 1e-6) << outputs << " " << margin;
    EXPECT_NEAR(value(found, "closed"), norm, 1e-6) << outputs << " " << margin;
  }
  for (const double temperature : {10.0, 100.0})
    EXPECT_NEAR(
        value(measured("robust_moe/t2", {{"outputs", "3 and -1"}, {"margin", 0.0}}, {{"temperature", temperature}}),
              "norm"),
        2.82842712 * temperature, 1e-5);
  EXPECT_EQ(verdicts("robust_moe/t2"), (Verdicts{true, true, true}));
}

// Section 7.1, experiment 7.1c. The paper's remark on large inputs is what fails.
TEST(RobustTheoryFigures, A44_TheRoutersPartGrowsWithTheRadius) {
  const std::pair<double, double> rows[] = {{0, .707107}, {1, 1.707107}, {10, 10.707107}, {100, 100.707107}};
  for (const auto& [radius, gradient] : rows) {
    const Json found = measured("robust_moe/t3", {{"path", "on the boundary"}, {"radius", radius}});
    EXPECT_NEAR(value(found, "router"), radius, 1e-9);
    EXPECT_NEAR(value(found, "gradient"), gradient, 1e-6);
  }
  EXPECT_EQ(verdicts("robust_moe/t3"), (Verdicts{false, true, true, true}));
}

// Section 7.1, experiment 7.1d: the jump is 2, the slope 1/h; the smooth slope at 0 is the temperature.
TEST(RobustTheoryFigures, A44_Top1JumpsAndTheSmoothLayerDoesNot) {
  for (const double h : {.1, .01, .0001}) {
    const Json found = measured("robust_moe/t4", {{"layer", "top-1"}, {"h", h}});
    EXPECT_NEAR(value(found, "jump"), 2, 1e-12);
    EXPECT_NEAR(value(found, "slope") * h, 1, 1e-9);
  }
  for (const double temperature : {1.0, 10.0, 100.0}) {
    const Json found =
        measured("robust_moe/t4", {{"temperature", temperature}, {"layer", cat("smooth, temperature ", temperature)}});
    EXPECT_NEAR(value(found, "at_zero"), temperature, 1e-9);
  }
  EXPECT_EQ(verdicts("robust_moe/t4"), (Verdicts{true, true, true}));
}

// Section 7.2: both illustrations are misprinted, both corrections hold.
TEST(RobustTheoryFigures, A46_BothIllustrations) {
  EXPECT_NEAR(value(measured("robust_moe/t5", {{"case", "orthogonal inputs"}, {"solution", "dense"}}), "norm"),
              2.263846, 1e-6);
  EXPECT_EQ(verdicts("robust_moe/t5"), (Verdicts{false, true, true, false, true, true}));
}

TEST(RobustTheoryFigures, A47_TheTiltedSubspaces) {
  const Json found = measured("robust_moe/t6", {{"bound", "theorem 1, eigenvectors"}, {"tilt", 0.01}});
  EXPECT_NEAR(value(found, "value"), .937428, 1e-6);  // section 7.4, table 7.4b
  EXPECT_NEAR(value(found, "epsilon_1"), .025126, 1e-6);
  EXPECT_EQ(verdicts("robust_moe/t6"), (Verdicts{true, true, true, true, true}));
}

// Section 7.3 and 7.4: only the definition as printed is violated.
TEST(RobustTheoryFigures, A48_RandomInstancesAndTheCounterexample) {
  EXPECT_EQ(verdicts("robust_moe/t7", {{"instances", 50}}), (Verdicts{false, true, true, true}));
  const Json found =
      measured("robust_moe/t8", {{"side", "bound with definition 1 as printed"}, {"second target", -0.05}});
  EXPECT_NEAR(value(found, "value"), .002139, 1e-6);
  EXPECT_EQ(verdicts("robust_moe/t8"), (Verdicts{false, true}));
}

TEST(RobustTheoryFigures, A49_EqualSpectra) {
  EXPECT_EQ(verdicts("robust_moe/t9"), (Verdicts{true, false, true, true}));
}

// Section 7.5. The first trial of each figure has the specification's seed.
TEST(RobustTheoryFigures, A50_TheFirstSeedsAreTheSpecifications) {
  EXPECT_NEAR(value(measured("robust_moe/t10", {{"samples", 64}}), "norm"), 10.828578, 1e-6);
  const Json theory = measured("robust_moe/t10", {{"samples", 8}});
  EXPECT_NEAR(value(theory, "theory"), 2.921, 5e-4);
  EXPECT_NEAR(value(measured("robust_moe/t11", {{"routing", "by block"}, {"experts", 8}}), "largest"), .473962, 1e-6);
  EXPECT_NEAR(
      value(measured("robust_moe/t12", {{"regime", "noisy: 256 samples of width 16, split in turn"}, {"experts", 4}}),
            "largest_norm"),
      2.478361, 1e-6);
}

TEST(RobustTheoryFigures, A51_InterpolatingExpertsAreNoLarger) {
  EXPECT_EQ(verdicts("robust_moe/t12"), (Verdicts{true, false}));
}

TEST(RobustTheoryFigures, RefuseSettingsThatMeanNothing) {
  EXPECT_NE(testing::error_text([] {
              find_figure("robust_moe/t10").jobs(make_run(Scale::small, {{"samples", {200}}}));
            }).find("fewer samples than the width 128, got 200"),
            std::string::npos);
  EXPECT_NE(testing::error_text([] {
              find_figure("robust_moe/t11").jobs(make_run(Scale::small, {{"experts", {3}}}));
            }).find("divide 16, got 3"),
            std::string::npos);
}

}  // namespace sparsight::robust_moe::theory_figures_test
