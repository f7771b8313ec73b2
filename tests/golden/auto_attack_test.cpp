// AutoPGD, FAB and Square against the reference implementation of AutoAttack, iteration by iteration and in float64:
// tests/golden/make_auto_attack.py made the file.
#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/apgd/apgd_run.h"
#include "sparsight/attacks/fab/fab_run.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/square/square_l2.h"
#include "sparsight/attacks/square/square_linf.h"
#include "sparsight/attacks/square/square_run.h"
#include "sparsight/attacks/target_classes.h"
#include "sparsight/io/safetensors.h"
#include "tests/support/near.h"
#include "tests/support/paths.h"

namespace sparsight::auto_attack_test {
namespace {

constexpr int64_t kInputs = 3 * 6 * 5, kHidden = 20, kClasses = 10;
constexpr double kTolerance = 1e-9;

const at::Tensor& golden(const std::string& name) {
  static const std::map<std::string, at::Tensor> tensors = [] {
    const TensorFile file = read_safetensors(test::source_path("tests/golden/auto_attack.safetensors"));
    return std::map<std::string, at::Tensor>(file.tensors.begin(), file.tensors.end());
  }();
  return tensors.at(name);
}

// sin(square * n^2 + n + phase).
at::Tensor wave(int64_t count, double square, double phase) {
  at::Tensor values = torch::empty({count}, torch::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<double>(i);
    values[i] = std::sin(square * n * n + n + phase);
  }
  return values;
}

at::Tensor golden_logits(const at::Tensor& x) {
  static const at::Tensor first = 0.6 * wave(kHidden * kInputs, 0.11, 0.1).view({kHidden, kInputs});
  static const at::Tensor second = wave(kClasses * kHidden, 0.13, 0.2).view({kClasses, kHidden});
  static const at::Tensor bias = wave(kHidden, 0.17, 0.3);
  return ((x.flatten(1) - 0.5).matmul(first.t()) + bias).sin().matmul(second.t());
}

AttackBatch golden_batch(const std::string& run) {
  AttackBatch batch{golden("images"), {golden("labels")}, torch::arange(golden("images").size(0), torch::kLong)};
  if (run.find("targeted") != std::string::npos) batch.labels.target = golden(run + "/target");
  return batch;
}

ThreatModel read_threat(const std::string& run) {
  if (run.rfind("L2", 0) == 0) return {Norm::l2, 0.15, {}};
  return {Norm::linf, 0.02, {}};
}

// s <- 48271 s mod (2^31 - 1), as in the script: one number after the other, whatever they are for.
class GoldenRandom : public SquareRandom {
 public:
  at::Tensor image_signs(int64_t, const AttackBatch& batch, int64_t count) override {
    return shared_signs(0, batch.pixels, batch.pixels.size(0) * count).view({batch.pixels.size(0), count});
  }
  at::Tensor shared_signs(int64_t, const at::Tensor&, int64_t count) override {
    at::Tensor signs = torch::empty({count}, torch::kDouble);
    for (int64_t i = 0; i < count; ++i) signs[i] = uniform() >= 0.5 ? 1.0 : -1.0;
    return signs;
  }
  int64_t below(int64_t, int64_t, int64_t n) override {
    return static_cast<int64_t>(static_cast<double>(n) * uniform());
  }

 private:
  double uniform() {
    state_ = state_ * 48271 % 2147483647;
    return static_cast<double>(state_) / 2147483647.0;
  }

  int64_t state_ = 12345;
};

}  // namespace

TEST(AutoAttackGolden, ModelsAgree) {
  EXPECT_TRUE(test::near(golden_logits(golden("images")), golden("logits"), 1e-12));
  const at::Tensor& logits = golden("logits");
  EXPECT_TRUE(torch::equal(target_classes(logits, 9).select(1, 0), golden("Linf/apgd_targeted/target")));
  EXPECT_TRUE(torch::equal(target_classes(logits, 9).select(1, 1), golden("Linf/apgd_targeted_third/target")));
  EXPECT_TRUE(torch::equal(target_classes(logits, 9).select(1, 3), golden("Linf/fab_targeted_fifth/target")));
}

class ApgdGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(ApgdGolden, A23_EveryIterationAgrees) {
  const std::string run = GetParam();
  AttackedFunction model(golden_logits);
  Objective objective{.loss = attack_loss::cross_entropy};
  if (run.find("dlr") != std::string::npos) objective.loss = attack_loss::dlr;
  if (run.find("targeted") != std::string::npos) objective.loss = attack_loss::targeted_dlr;
  std::vector<at::Tensor> losses, steps;
  AttackContext context{read_threat(run)};
  context.observe = [&](const AttackStep& step) {
    losses.push_back(step.loss);
    if (step.iteration > 0) steps.push_back(step.step_size);
  };
  const at::Tensor& start = golden(run.substr(0, run.find('/')) + "/start");
  const ApgdRunOptions options{.iterations = golden(run + "/steps").size(0)};
  const ApgdRun found = run_apgd(model, objective, golden_batch(run), context, options, start, 0);
  const at::Tensor& compared = golden(run + "/compared");
  ASSERT_GE(compared.size(0), 3);
  const auto agree = [&](const at::Tensor& got, const at::Tensor& expected, int64_t images_axis) {
    return test::near(got.index_select(images_axis, compared), expected.index_select(images_axis, compared),
                      kTolerance);
  };
  EXPECT_TRUE(agree(torch::stack(losses), golden(run + "/losses"), 1));
  EXPECT_TRUE(agree(torch::stack(steps), golden(run + "/steps"), 1));
  EXPECT_TRUE(agree(found.best, golden(run + "/best"), 0));
  EXPECT_TRUE(agree(found.best_loss, golden(run + "/best_loss"), 0));
  const at::Tensor fooled = golden(run + "/fooled").to(torch::kBool);
  EXPECT_TRUE(torch::equal(found.fooled, fooled));
  EXPECT_TRUE(agree(found.last_fooled, choose_images(fooled, golden(run + "/last_fooled"), golden(run + "/best")), 0));
}

INSTANTIATE_TEST_SUITE_P(Linf, ApgdGolden,
                         ::testing::Values("Linf/apgd_ce", "Linf/apgd_ce_short", "Linf/apgd_dlr", "Linf/apgd_targeted",
                                           "Linf/apgd_targeted_third"));
INSTANTIATE_TEST_SUITE_P(L2, ApgdGolden,
                         ::testing::Values("L2/apgd_ce", "L2/apgd_ce_short", "L2/apgd_dlr", "L2/apgd_targeted",
                                           "L2/apgd_targeted_third"));

class FabGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(FabGolden, A32_EveryIterationAgrees) {
  const std::string run = GetParam();
  AttackedFunction model(golden_logits);
  const AttackBatch batch = golden_batch(run);
  std::vector<at::Tensor> distances;
  AttackContext context{read_threat(run)};
  context.observe = [&](const AttackStep& step) { distances.push_back(-step.loss); };
  const FabRun found =
      run_fab(model, batch, context, {.iterations = golden(run + "/distances").size(0)}, batch.pixels, 0);
  EXPECT_TRUE(test::near(torch::stack(distances), golden(run + "/distances"), kTolerance));
  EXPECT_TRUE(test::near(found.closest, golden(run + "/closest"), kTolerance));
  EXPECT_LT(found.distance.min().item<double>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Linf, FabGolden,
                         ::testing::Values("Linf/fab", "Linf/fab_targeted", "Linf/fab_targeted_fifth"));
INSTANTIATE_TEST_SUITE_P(L2, FabGolden, ::testing::Values("L2/fab", "L2/fab_targeted", "L2/fab_targeted_fifth"));

class SquareGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(SquareGolden, A32_TheFinalPointsAgree) {
  const std::string run = GetParam();
  AttackedFunction model(golden_logits);
  const AttackBatch batch = golden_batch(run);
  GoldenRandom random;
  at::Tensor queries = torch::ones({batch.pixels.size(0)}, torch::kLong);
  AttackContext context{read_threat(run)};
  context.observe = [&](const AttackStep& step) { queries.index_add_(0, step.image, torch::ones_like(step.image)); };
  const SquareMovesContext moves{context.threat, 0.8, &random};
  SquareLinf linf(moves);
  SquareL2 l2(moves);
  SquareMoves& of_norm = context.threat.norm == Norm::linf ? static_cast<SquareMoves&>(linf) : l2;
  const SquareRun found = run_square(model, batch, context, {300}, of_norm, 0);
  EXPECT_TRUE(test::near(found.pixels, golden(run + "/final"), kTolerance));
  EXPECT_TRUE(test::near(found.margin, golden(run + "/margin"), kTolerance));
  EXPECT_TRUE(torch::equal(queries, golden(run + "/queries")));
}

INSTANTIATE_TEST_SUITE_P(Norms, SquareGolden, ::testing::Values("Linf/square", "L2/square"));

}  // namespace sparsight::auto_attack_test
