// AutoPGD: schedule, the worked example iteration by iteration, properties of its steps, targets.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/apgd/apgd.h"
#include "sparsight/attacks/apgd/apgd_schedule.h"
#include "sparsight/attacks/apgd/apgd_targeted.h"
#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/target_classes.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"

namespace sparsight::apgd_test {
namespace {

struct ApgdTrace {
  ApgdRun run;
  std::vector<AttackStep> steps;

  double loss(size_t i) const { return steps[i].loss.item<double>(); }
  double step_size(size_t i) const { return steps[i].step_size.item<double>(); }
};

ApgdTrace trace_apgd(const ThreatModel& threat, AttackLoss loss, int64_t iterations, const AttackBatch& given,
                     const at::Tensor& start) {
  AttackedFunction model = test::toy_model();
  AttackBatch batch = given;
  batch.image = torch::arange(batch.pixels.size(0), torch::kLong);
  ApgdTrace trace;
  AttackContext context{threat, 1};
  context.observe = [&](const AttackStep& step) { trace.steps.push_back(step); };
  trace.run = run_apgd(model, {.loss = loss}, batch, context, {.iterations = iterations}, start, 0);
  return trace;
}

// The worked example: from x + (.05, -.05, .02, -.08).
ApgdTrace example(Norm norm, double epsilon, AttackLoss loss, int64_t iterations) {
  const AttackBatch batch = test::toy_batch();
  return trace_apgd({norm, epsilon, {}}, loss, iterations, batch, batch.pixels + test::row({.05, -.05, .02, -.08}));
}

void expect_best(const ApgdTrace& trace, const std::vector<double>& x, double loss, double final_step,
                 double tolerance) {
  EXPECT_TRUE(test::near(trace.run.best, test::row(x), tolerance));
  EXPECT_NEAR(trace.run.best_loss.item<double>(), loss, tolerance);
  EXPECT_TRUE(trace.run.fooled.item<bool>());
  EXPECT_GE(trace.steps.back().step_size.item<double>(), final_step * (1 - 1e-12));
}

}  // namespace

TEST(Apgd, A22_Checkpoints) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(apgd_checkpoints(100), (List{22, 41, 57, 70, 80, 87, 93, 99}));
  EXPECT_EQ(apgd_checkpoints(40), (List{8, 15, 21, 26, 30, 33, 35, 37, 39}));
  List twenty{4, 7};
  for (int64_t i = 9; i <= 20; ++i) twenty.push_back(i);
  EXPECT_EQ(apgd_checkpoints(20), twenty);
  EXPECT_EQ(apgd_checkpoints(10), (List{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(apgd_checkpoints(1), List{1});
}

TEST(Apgd, A23_ReproducesTheTraceOfTheWorkedExample) {
  const ApgdTrace trace = example(Norm::linf, .25, attack_loss::cross_entropy, 10);
  const double losses[] = {1.021777, 4.423252, 0.430730, 0.968927, 3.255806,
                           3.863945, 3.859800, 4.701523, 4.184436, 4.603818};
  const double steps[] = {.5, .5, .5, .25, .25, .125, .125, .0625, .0625, .03125};
  ASSERT_EQ(trace.steps.size(), 11u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(trace.loss(i + 1), losses[i], 1e-6) << i + 1;
    EXPECT_NEAR(trace.step_size(i + 1), steps[i], 1e-12) << i + 1;
  }
  const std::vector<std::vector<double>> points = {
      {.55, .35, .75, 0}, {.225, .675, .4325, .3075}, {.05, .85, .25, .45}, {.09375, .80625, .295625, .414375}};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(test::near(trace.steps[i + 1].pixels, test::row(points[i]), 1e-6)) << i + 1;
}

TEST(Apgd, A23_ReproducesTheBestPointsOfTheWorkedExample) {
  const AttackLoss ce = attack_loss::cross_entropy;
  expect_best(example(Norm::linf, .25, ce, 10), {.193359, .706641, .400508, .337617}, 4.701523, .03125, 1e-6);
  expect_best(example(Norm::linf, .25, ce, 20), {.169092, .730908, .446611, .315264}, 4.786284, .0078125, 1e-6);
  expect_best(example(Norm::linf, .25, ce, 100), {.110353, .789647, .636511, .386872}, 4.894314, .00390625, 1e-5);
  expect_best(example(Norm::linf, .25, attack_loss::dlr, 20), {.111707, .846887, .498796, .239641}, 11.807620, .015625,
              1e-6);
  expect_best(example(Norm::l2, .4, ce, 20), {.174049, .691969, .355086, .268401}, 4.720855, .025, 1e-6);
  expect_best(example(Norm::l2, .4, ce, 100), {.157396, .861566, .608920, .321285}, 4.893056, .0125, 1e-5);
}

// The losses grew in 17 of the first 22 iterations, so the step is kept, and halved at the seven other checks.
TEST(Apgd, A23_HalvesAtTheChecksOfTheWorkedExample) {
  const ApgdTrace trace = example(Norm::linf, .25, attack_loss::cross_entropy, 100);
  const std::vector<int64_t> checks = apgd_checkpoints(100);
  const int grown[] = {17, 14, 9, 6, 5, 4, 2, 3};
  size_t from = 1;
  for (size_t c = 0; c < checks.size(); ++c) {
    int count = 0;
    for (; from <= static_cast<size_t>(checks[c]); ++from) count += trace.loss(from) > trace.loss(from - 1);
    EXPECT_EQ(count, grown[c]) << checks[c];
    if (from == trace.steps.size()) break;
    EXPECT_NEAR(trace.step_size(from), .5 / std::pow(2, c), 1e-12) << checks[c];
  }
}

// Steps only ever halve; the first point after a halving departs from the best one, by at most a step and the momentum;
// the best loss never falls; every point is allowed.
TEST(Apgd, A24_StepsAndBestLossesOfManyImages) {
  const AttackBatch batch = test::toy_images(30);
  for (const Norm norm : {Norm::linf, Norm::l2}) {
    const ThreatModel threat{norm, .3, {}};
    const ApgdTrace trace = trace_apgd(threat, attack_loss::cross_entropy, 60, batch, batch.pixels);
    const std::vector<int64_t> checks = apgd_checkpoints(60);
    int64_t halvings = 0;
    at::Tensor best_point = batch.pixels, best_loss = trace.steps[0].loss;
    for (size_t i = 1; i < trace.steps.size(); ++i) {
      const AttackStep& step = trace.steps[i];
      check_perturbation(step.pixels, batch.pixels, threat, true);
      if (i > 1) {
        const at::Tensor ratio = step.step_size / trace.steps[i - 1].step_size;
        EXPECT_TRUE(((ratio == 1) | (ratio == 0.5)).all().item<bool>());
        const bool after_check = std::ranges::find(checks, static_cast<int64_t>(i) - 1) != checks.end();
        const at::Tensor halved = ratio == 0.5;
        EXPECT_TRUE(after_check || !halved.any().item<bool>()) << i;
        for (int64_t image = 0; image < 30; ++image) {
          if (!halved[image].item<bool>()) continue;
          ++halvings;
          // z = Proj(best + step), x = best + .75 (z - best) + .25 (best - previous point).
          const at::Tensor leap = step.pixels[image] - best_point[image];
          const at::Tensor momentum =
              .25 * image_norms(best_point.narrow(0, image, 1) - trace.steps[i - 2].pixels.narrow(0, image, 1), norm);
          const at::Tensor reach = .75 * step.step_size[image] + momentum[0];
          EXPECT_LE(image_norms(leap.unsqueeze(0), norm).item<double>(), reach.item<double>() + 1e-9);
        }
      }
      EXPECT_TRUE((step.best_loss >= best_loss).all().item<bool>());
      const at::Tensor better = step.loss > best_loss;
      best_point = torch::where(better.unsqueeze(1), step.pixels, best_point);
      best_loss = torch::maximum(best_loss, step.loss);
      EXPECT_TRUE(torch::equal(step.best_loss, best_loss));
    }
    EXPECT_GT(halvings, 30);
    EXPECT_TRUE(torch::equal(trace.run.best, best_point));
  }
}

TEST(Apgd, A23_AttacksOnlyWhatIsNotYetFooled) {
  const AttackBatch batch = test::toy_images(20);
  const at::Tensor clean = classified_correctly(test::toy_logits(batch.pixels), batch.labels.label);
  AttackContext context{{Norm::linf, .05, {}}, 1};
  std::vector<int64_t> attacked;
  context.observe = [&](const AttackStep& step) {
    if (step.iteration == 0) attacked.push_back(step.image.size(0));
  };
  ApgdOptions options;
  options.steps = 15;
  options.restarts = 4;
  AttackedFunction model = test::toy_model();
  const AttackResult result = Apgd(options, context).run(model, batch);
  EXPECT_EQ(attacked.front(), clean.sum().item<int64_t>());
  EXPECT_TRUE(std::ranges::is_sorted(attacked, std::greater<>()));
  const int64_t left = result.correct.sum().item<int64_t>();
  EXPECT_LT(left, attacked.front());
  EXPECT_GT(left, 0);
  const at::Tensor untouched = (~clean).nonzero().squeeze(1);
  EXPECT_TRUE(torch::equal(result.pixels.index_select(0, untouched), batch.pixels.index_select(0, untouched)));
}

TEST(ApgdTargeted, A27_VisitsTheNextMostLikelyClassesAndSkipsFooledImages) {
  // Twelve classes whose logits fall with the class, by more than an attack within epsilon changes; only class 3 can be
  // reached, by the first pixel.
  const at::Tensor offsets = -torch::arange(12, torch::kDouble);
  AttackedFunction model([&](const at::Tensor& x) {
    return offsets +
           torch::cat({torch::zeros({x.size(0), 3}, torch::kDouble), 40 * x.narrow(1, 0, 1) - 20 + x.narrow(1, 1, 1),
                       torch::zeros({x.size(0), 8}, torch::kDouble)},
                      1);
  });
  // Image 0: class 3 is at -3 + 0 and exceeds 0 once the first pixel has grown by 0.075. Image 1 is out of reach.
  const AttackBatch batch{torch::tensor({{.5, 0.}, {.1, 0.}}, torch::kDouble), {torch::tensor({0, 0}, torch::kLong)}};
  std::vector<std::vector<int64_t>> visits;
  AttackContext context{{Norm::linf, .1, {}}, 1};
  context.observe = [&](const AttackStep& step) {
    if (step.iteration == 0)
      visits.emplace_back(step.image.data_ptr<int64_t>(), step.image.data_ptr<int64_t>() + step.image.numel());
  };
  ApgdTargetedOptions options;
  options.steps = 10;
  const AttackResult result = ApgdTargeted(options, context).run(model, batch);
  // Nine targets: classes 1 to 9 of image 1, classes 1 to 3 of image 0, which the third one fools at the latest.
  ASSERT_EQ(visits.size(), 9u);
  EXPECT_EQ(visits[0], (std::vector<int64_t>{0, 1}));
  for (size_t i = 3; i < 9; ++i) EXPECT_EQ(visits[i], std::vector<int64_t>{1}) << i;
  EXPECT_TRUE(torch::equal(result.correct, torch::tensor({false, true})));
}

TEST(ApgdTargeted, A27_TargetsAreOrderedByTheCleanLogits) {
  const at::Tensor logits = torch::tensor({{3., 9., 1., 7., 5.}, {1., 1., 0., 1., 2.}});
  EXPECT_TRUE(torch::equal(target_classes(logits, 3), torch::tensor({{3, 4, 0}, {0, 1, 3}}, torch::kLong)));
  EXPECT_EQ(target_classes(logits, 9).size(1), 4);
  // An image of class 3 that is taken for class 1 is moved to others than its own class.
  EXPECT_TRUE(torch::equal(target_classes(logits, 3, torch::tensor({3, 4}, torch::kLong)),
                           torch::tensor({{1, 4, 0}, {0, 1, 3}}, torch::kLong)));
}

TEST(ApgdTargeted, StartsAtTheImageOnRequest) {
  const at::Tensor slopes = torch::arange(12, torch::kDouble).view({2, 6});
  AttackedFunction model([&](const at::Tensor& x) { return x.matmul(slopes.sin()); });
  const AttackBatch batch{torch::tensor({{.5, .4}, {.1, .9}}, torch::kDouble), {torch::tensor({0, 0}, torch::kLong)}};
  for (const char* start : {"surface", "none"}) {
    double moved = 0;
    AttackContext context{{Norm::linf, .1, {}}, 1};
    context.observe = [&](const AttackStep& step) {
      if (step.iteration == 0)
        moved = std::max(moved, (step.pixels - batch.pixels.index_select(0, step.image)).abs().max().item<double>());
    };
    ApgdTargetedOptions options;
    options.steps = 2;
    options.start = start;
    AttackBatch correct = batch;
    correct.labels.label = batch.pixels.matmul(slopes.sin()).argmax(1);
    ApgdTargeted(options, context).run(model, correct);
    EXPECT_NEAR(moved, start == std::string("none") ? 0 : .1, 1e-12) << start;
  }
}

TEST(ApgdTargeted, NeedsFourClasses) {
  AttackedFunction model([](const at::Tensor& x) { return x.narrow(1, 0, 3) * torch::arange(1, 4); });
  const AttackBatch batch = {test::toy_batch().pixels, {torch::tensor({2}, torch::kLong)}};
  EXPECT_NE(testing::error_text([&] { ApgdTargeted({}, {}).run(model, batch); }).find("at least 4 classes"),
            std::string::npos);
}

}  // namespace sparsight::apgd_test
