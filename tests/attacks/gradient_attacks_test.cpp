// FGSM and PGD: the worked example, presets, images without gradient.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/fgsm.h"
#include "sparsight/attacks/pgd.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::gradient_attacks_test {
namespace {

at::Tensor fgsm(Norm norm, double epsilon) {
  AttackedFunction model = test::toy_model();
  return Fgsm({}, {{norm, epsilon, {}}}).run(model, test::toy_batch()).pixels;
}

int64_t prediction(const at::Tensor& x) { return test::toy_logits(x).argmax(1).item<int64_t>(); }

// PGD on one image or several, with every evaluation that it made.
struct PgdTrace {
  at::Tensor found;
  std::vector<at::Tensor> points;
  std::vector<at::Tensor> losses;
};

PgdTrace trace_pgd(const PgdOptions& options, const ThreatModel& threat, const AttackBatch& batch = test::toy_batch()) {
  AttackedFunction model = test::toy_model();
  PgdTrace trace;
  AttackContext context{threat, 5};
  context.observe = [&](const AttackStep& step) {
    trace.points.push_back(step.pixels);
    trace.losses.push_back(step.loss);
  };
  trace.found = Pgd(options, context).run(model, batch).pixels;
  return trace;
}

PgdOptions paper(int64_t steps) {
  PgdOptions options;
  options.preset = "paper";
  options.steps = steps;
  return options;
}

}  // namespace

TEST(Fgsm, A17_ReproducesTheWorkedExample) {
  EXPECT_TRUE(test::near(fgsm(Norm::linf, .1), test::row({.2, .7, .4, .3}), 1e-6));
  EXPECT_NEAR(test::toy_cross_entropy(fgsm(Norm::linf, .1)), 4.734805, 1e-6);
  EXPECT_EQ(prediction(fgsm(Norm::linf, .1)), 2);
  // Too long a step: the loss is lower than before.
  EXPECT_TRUE(test::near(fgsm(Norm::linf, .25), test::row({.05, .85, .25, .45}), 1e-6));
  EXPECT_NEAR(test::toy_cross_entropy(fgsm(Norm::linf, .25)), 0.430730, 1e-6);
  EXPECT_TRUE(test::near(fgsm(Norm::l2, .1), test::row({.253088, .647964, .446341, .251181}), 1e-6));
  EXPECT_NEAR(test::toy_cross_entropy(fgsm(Norm::l2, .1)), 3.156500, 1e-6);
}

// One pass of ten has the logits (10, 0), the others (0, 1): their mean is (1, 0.9), so class 0, although nine of ten
// passes say 1. The verdict of the report is that of the mean too.
TEST(Attack, TheMeanLogitsOfARandomisedModelDecide) {
  int64_t pass_number = 0;
  AttackedFunction model(
      [&](const at::Tensor& x, const AttackPass&) {
        const bool first = pass_number++ % 10 == 0;
        ModelOutput output;
        output.logits = torch::tensor({first ? 10.0 : 0.0, first ? 0.0 : 1.0}, torch::kDouble).expand({x.size(0), 2});
        return output;
      },
      /*randomised=*/true);
  const AttackBatch batch{
      torch::full({2, 3}, 0.5, torch::kDouble), {torch::tensor({0, 1}, torch::kLong)}, torch::arange(2, torch::kLong)};
  EXPECT_TRUE(torch::equal(still_correct(model, batch, batch.pixels, 0), torch::tensor({true, false})));
}

TEST(Fgsm, CountsQueriesAndGradients) {
  AttackedFunction model = test::toy_model();
  const AttackResult result = Fgsm({}, {{Norm::linf, .1, {}}}).run(model, test::toy_images(7));
  EXPECT_EQ(result.cost.queries, 14);  // the gradient's pass and that of the result
  EXPECT_EQ(result.cost.gradients, 7);
}

TEST(Pgd, A18_ThePaperPresetReproducesTheWorkedExample) {
  const PgdTrace four = trace_pgd(paper(4), {Norm::linf, .1, {}});
  EXPECT_TRUE(test::near(four.found, test::row({.2, .7, .4, .3}), 1e-6));
  const double losses[] = {0.990809, 1.910467, 3.159078, 4.235222, 4.734805};
  ASSERT_EQ(four.losses.size(), 5u);
  for (size_t t = 0; t < 5; ++t) EXPECT_NEAR(four.losses[t].item<double>(), losses[t], 1e-6) << t;
  EXPECT_EQ(prediction(four.found), 2);
  // The last iterate is returned although the one after two steps has a larger loss.
  const PgdTrace five = trace_pgd(paper(5), {Norm::linf, .25, {}});
  EXPECT_TRUE(test::near(five.found, test::row({.15, .75, .35, .35}), 1e-6));
  EXPECT_NEAR(five.losses[5].item<double>(), 3.576527, 1e-6);
  EXPECT_NEAR(five.losses[2].item<double>(), 4.734805, 1e-6);
  EXPECT_EQ(prediction(five.found), 2);
  const PgdTrace l2 = trace_pgd(paper(4), {Norm::l2, .2, {}});
  EXPECT_TRUE(test::near(l2.found, test::row({.202863, .699909, .397791, .300528}), 1e-6));
  EXPECT_NEAR(largest_perturbation(l2.found, test::toy_batch().pixels, Norm::l2), .199925, 1e-6);
  EXPECT_NEAR(l2.losses[4].item<double>(), 4.732325, 1e-6);
}

TEST(Pgd, A18_ThePaperPresetStaysWithinTheStepsTakenAndDoesNotClip) {
  const AttackBatch batch = test::toy_images(20);
  const PgdTrace trace = trace_pgd(paper(8), {Norm::linf, .4, {}}, batch);
  for (size_t t = 0; t <= 8; ++t)
    EXPECT_LE(largest_perturbation(trace.points[t], batch.pixels, Norm::linf), static_cast<double>(t) * .4 / 8 + 1e-12)
        << t;
  EXPECT_TRUE(test::near(trace.found, trace.points[8], 1e-12));
  EXPECT_LT(trace.found.min().item<double>(), 0);
  EXPECT_GT(trace.found.max().item<double>(), 1);
}

TEST(Pgd, A18_WithoutAnObserverThePaperPresetIsTheSame) {
  AttackedFunction model = test::toy_model();
  const AttackResult result = Pgd(paper(4), {{Norm::linf, .1, {}}}).run(model, test::toy_batch());
  EXPECT_TRUE(test::near(result.pixels, test::row({.2, .7, .4, .3}), 1e-6));
  EXPECT_EQ(result.cost.gradients, 4);
  EXPECT_EQ(result.cost.queries, 5);
}

TEST(Pgd, A19_TheStrictPresetReproducesTheClippedExample) {
  PgdOptions options;
  options.steps = 10;
  options.relative_step = .25;
  options.keep = "last";
  const PgdTrace trace = trace_pgd(options, {Norm::l2, .4, {}});
  EXPECT_TRUE(test::near(trace.found, test::row({.176852, .740021, .460257, .283556}), 1e-6));
  EXPECT_NEAR(test::toy_cross_entropy(trace.found), 4.757668, 1e-6);
}

// keep = "loss": of all points the largest loss. The default: of the points that fool the model the largest loss, of
// all where none does.
TEST(Pgd, A19_TheStrictPresetKeepsTheStrongestPointInTheSet) {
  const AttackBatch batch = test::toy_images(40);
  const auto fooled = [&](const at::Tensor& points) {
    return ~classified_correctly(test::toy_logits(points), batch.labels.label);
  };
  int64_t differ = 0;  // images whose two answers have different losses
  for (const Norm norm : {Norm::linf, Norm::l2})
    for (const char* start : {"none", "ball", "surface"})
      for (const std::string keep : {"preset", "loss"}) {
        PgdOptions options;
        options.steps = 12;
        options.start = start;
        options.restarts = 2;
        options.keep = keep;
        const ThreatModel threat{norm, .15, {}};
        const PgdTrace trace = trace_pgd(options, threat, batch);
        std::vector<at::Tensor> points = trace.points, losses = trace.losses;
        if (keep == "preset") {  // a misclassified image stays one
          points.push_back(batch.pixels);
          losses.push_back(attack_loss::cross_entropy(test::toy_logits(batch.pixels), batch.labels));
        }
        at::Tensor best = losses[0], best_fooled = torch::full_like(losses[0], -1), ever = fooled(points[0]);
        for (size_t t = 0; t < points.size(); ++t) {
          check_perturbation(points[t], batch.pixels, threat, true);
          best = torch::maximum(best, losses[t]);
          best_fooled = torch::where(fooled(points[t]), torch::maximum(best_fooled, losses[t]), best_fooled);
          ever = ever | fooled(points[t]);
        }
        const at::Tensor expected = keep == "loss" ? best : torch::where(ever, best_fooled, best);
        differ += expected.lt(best).sum().item<int64_t>();
        const at::Tensor loss = attack_loss::cross_entropy(test::toy_logits(trace.found), batch.labels);
        EXPECT_TRUE(test::near(loss, expected, 1e-12)) << start << " " << keep;
        if (keep == "preset") {
          EXPECT_TRUE(torch::equal(fooled(trace.found), ever)) << start;
        }
      }
  RecordProperty("images whose loss is below the largest", static_cast<int>(differ));
}

TEST(Pgd, RefusesSettingsThatThePaperDoesNotHave) {
  PgdOptions options = paper(4);
  options.restarts = 2;
  EXPECT_NE(testing::error_text<UsageError>([&] { Pgd(options, {}); }).find("preset = \"strict\""), std::string::npos);
}

TEST(GradientAttacks, A21_AnImageWithoutGradientStaysWhereItIs) {
  AttackedFunction flat([](const at::Tensor& x) { return torch::cat({x * 0, x.narrow(1, 0, 1) * 0 + 1}, 1); });
  const AttackBatch batch = {test::toy_batch().pixels, {torch::tensor({4}, torch::kLong)}};
  for (const Norm norm : {Norm::linf, Norm::l2}) {
    const AttackContext context{{norm, .1, {}}};
    EXPECT_TRUE(torch::equal(Fgsm({}, context).run(flat, batch).pixels, batch.pixels));
    EXPECT_TRUE(torch::equal(Pgd({}, context).run(flat, batch).pixels, batch.pixels));
    EXPECT_TRUE(torch::equal(Pgd(paper(3), context).run(flat, batch).pixels, batch.pixels));
  }
}

}  // namespace sparsight::gradient_attacks_test
