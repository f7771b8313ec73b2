// AutoPGD, PGD and FAB within the l1 ball: exact on linear classifiers, and the schedules of AutoPGD's steps.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "sparsight/attacks/apgd/apgd.h"
#include "sparsight/attacks/apgd/apgd_schedule.h"
#include "sparsight/attacks/apgd/sparse_steps.h"
#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/fab/fab.h"
#include "sparsight/attacks/fab/hyperplane.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/pgd.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::apgd_l1_test {
namespace {

// Two classes whose logits are (w (x - .5), 0), on 12 pixels.
const at::Tensor& linear_weights() {
  static const at::Tensor w = test::random_tensor({12}, 3);
  return w;
}

at::Tensor linear_logits(const at::Tensor& x) {
  const at::Tensor z = (x - .5).matmul(linear_weights()).unsqueeze(1);
  return torch::cat({z, torch::zeros_like(z)}, 1);
}

AttackBatch linear_images() {
  const at::Tensor x = .5 + .05 * test::random_tensor({40, 12}, 5);
  return {x, {linear_logits(x).argmax(1)}};
}

// Which images the attack within epsilon leaves correct must follow from the smallest perturbation, which moves the
// pixel of the largest weight alone: |z| / max |w|, where no pixel comes to the edge. slack: of the attack, relative.
void expect_exact(const Attack& attack, const at::Tensor& bound, double slack) {
  AttackedFunction model(linear_logits);
  const AttackBatch batch = linear_images();
  const AttackResult found = attack.run(model, batch);
  const ThreatModel& threat = attack.context().threat;
  check_perturbation(found.pixels, batch.pixels, threat, true);
  EXPECT_LE(largest_perturbation(found.pixels, batch.pixels, Norm::l1), threat.epsilon);
  const at::Tensor sure = (bound < threat.epsilon * (1 - slack)) | (bound > threat.epsilon);
  EXPECT_GE(sure.sum().item<int64_t>(), 35);
  EXPECT_TRUE(torch::equal(found.correct.index({sure}), (bound > threat.epsilon).index({sure})));
}

}  // namespace

TEST(L1Attacks, AreExactOnALinearClassifier) {
  const at::Tensor bound = linear_logits(linear_images().pixels).select(1, 0).abs() / linear_weights().abs().max();
  ASSERT_LT(bound.max().item<double>(), .3);  // pixels are at least as far from 0 and 1
  ASSERT_GT(linear_images().pixels.min().item<double>(), .3);
  ASSERT_LT(linear_images().pixels.max().item<double>(), .7);
  const double epsilon = bound.median().item<double>() * 1.001;
  const AttackContext context{{Norm::l1, epsilon, {}}, 1};
  expect_exact(Apgd({}, context), bound, 1e-6);
  expect_exact(Pgd({}, context), bound, 1e-6);
  FabOptions fab;
  fab.steps = 20;
  expect_exact(Fab(fab, context), bound, .06);  // it ends a little beyond the boundary
}

TEST(L1Attacks, RepeatTheirBits) {
  const AttackBatch batch = test::toy_images(20);
  const AttackContext context{{Norm::l1, .2, {}}, 4};
  const auto found = [&](const Attack& attack) {
    AttackedFunction model = test::toy_model();
    return attack.run(model, batch).pixels;
  };
  ApgdOptions options;
  options.steps = 5;
  EXPECT_TRUE(torch::equal(found(Apgd(options, context)), found(Apgd(options, context))));
  EXPECT_FALSE(torch::equal(found(Apgd(options, context)), found(Apgd(options, {context.threat, 5}))));
}

TEST(L1Attacks, LowerTheRobustAccuracyOfASmoothModel) {
  const AttackBatch batch = test::toy_images(30);
  const at::Tensor clean = classified_correctly(test::toy_logits(batch.pixels), batch.labels.label);
  const ThreatModel threat{Norm::l1, .3, {}};
  PgdOptions paper;
  paper.preset = "paper";
  const Apgd apgd({}, {threat, 2});
  const Pgd pgd({}, {threat, 2}), unprojected(paper, {threat, 2});
  for (const Attack* attack : std::initializer_list<const Attack*>{&apgd, &pgd, &unprojected}) {
    AttackedFunction model = test::toy_model();
    const AttackResult result = attack->run(model, batch);
    check_perturbation(result.pixels, batch.pixels, threat, attack->clips_pixels());
    EXPECT_LT((clean & result.correct).sum().item<int64_t>(), clean.sum().item<int64_t>() * 2 / 3);
  }
}

TEST(SparseSteps, ChecksAreEven) {
  EXPECT_EQ(ApgdSchedule::even(100).count(), 0);
  ApgdSchedule schedule = ApgdSchedule::even(100);
  for (int64_t i = 1; i <= 100; ++i) EXPECT_EQ(schedule.count(), i % 4 == 0 ? 4 : 0) << i;
  ApgdSchedule single = ApgdSchedule::even(20);  // 0.8, at least 1
  for (int64_t i = 1; i <= 20; ++i) EXPECT_EQ(single.count(), 1);
}

// A fifth of the 10 pixels at first. A best point with 6 changed ones asks for 4, the same one again for no new start;
// 2 for 1, where the authors' code rounds up to 2.
TEST(SparseSteps, TakeTwoThirdsOfWhatTheBestPointChanges) {
  const at::Tensor image = torch::full({1, 10}, .5, torch::kDouble), gradient = torch::arange(1, 11, torch::kDouble);
  SparseSteps steps(image, {});
  const auto changed_pixels = [&] {
    const at::Tensor direction = steps.direction(image, gradient.unsqueeze(0));
    EXPECT_NEAR(direction.abs().sum().item<double>(), 1, 1e-12);
    return direction.ne(0).sum().item<int64_t>();
  };
  const auto check = [&](int64_t changed) {
    at::Tensor best = image.clone();
    best.narrow(1, 0, changed).add_(.1);
    return steps.check(best).item<bool>();
  };
  EXPECT_EQ(changed_pixels(), 2);
  EXPECT_TRUE(check(6));
  EXPECT_EQ(changed_pixels(), 4);
  EXPECT_FALSE(check(6));
  EXPECT_EQ(changed_pixels(), 4);
  EXPECT_TRUE(check(2));
  EXPECT_EQ(changed_pixels(), 1);
  EXPECT_TRUE(check(1));
  EXPECT_EQ(changed_pixels(), 1);
  EXPECT_TRUE(check(0));
  EXPECT_FALSE(check(0));
  EXPECT_EQ(changed_pixels(), 1);
}

// Steps begin at epsilon, fall by 1.5 at checks down to a tenth of it, and begin again where the best point has become
// sparser; every point is allowed, the best loss never falls, and the best point is returned.
TEST(SparseSteps, TheSchedulesOfManyImages) {
  AttackBatch batch = test::toy_images(30);
  batch.image = torch::arange(30, torch::kLong);
  const ThreatModel threat{Norm::l1, .3, {}};
  std::vector<AttackStep> steps;
  AttackContext context{threat, 1};
  context.observe = [&](const AttackStep& step) { steps.push_back(step); };
  AttackedFunction model = test::toy_model();
  const ApgdRun run = run_apgd(model, {.loss = attack_loss::cross_entropy}, batch, context, {.iterations = 75},
                               batch.pixels, 0);  // a check after every third iteration
  ASSERT_EQ(steps.size(), 76u);
  EXPECT_TRUE(steps[1].step_size.eq(.3).all().item<bool>());
  at::Tensor best_point = batch.pixels, best_loss = steps[0].loss;
  int64_t reduced = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    check_perturbation(steps[i].pixels, batch.pixels, threat, true);
    EXPECT_TRUE((steps[i].step_size >= .03 - 1e-12).all().item<bool>());
    if (i > 1) {
      const at::Tensor now = steps[i].step_size, before = steps[i - 1].step_size;
      const at::Tensor smaller = (now - (before / 1.5).clamp_min(.03)).abs() < 1e-12, again = now.eq(.3);
      EXPECT_TRUE(((i - 1) % 3 == 0 ? smaller | again : now.eq(before)).all().item<bool>()) << i;
      reduced += now.lt(before).sum().item<int64_t>();
    }
    const at::Tensor better = steps[i].loss > best_loss;
    best_point = torch::where(better.unsqueeze(1), steps[i].pixels, best_point);
    best_loss = torch::maximum(best_loss, steps[i].loss);
    EXPECT_TRUE(torch::equal(steps[i].best_loss, best_loss));
  }
  EXPECT_GT(reduced, 30);
  EXPECT_TRUE(torch::equal(run.best, best_point));
}

// Without the box in the way the steepest coordinate alone moves, by .3 / 2. Where it has room for .05 only, the next
// one gives the rest: 3 * .05 + 1 * .14 = .29.
TEST(Hyperplane, MovesOfTheL1NormTakeTheSteepestCoordinatesFirst) {
  const at::Tensor excess = torch::tensor({.3}, torch::kDouble);
  const at::Tensor move = move_to_hyperplane(test::row({.5, .5, .5}), test::row({1, -2, 1.5}), excess, Norm::l1, {});
  EXPECT_TRUE(test::near(move, test::row({0, .15, 0}), 1e-12));
  const at::Tensor short_room =
      move_to_hyperplane(test::row({.95, .5}), test::row({-3, -1}), torch::tensor({.29}, torch::kDouble), Norm::l1, {});
  EXPECT_TRUE(test::near(short_room, test::row({.05, .14}), 1e-12));
  // Out of reach: the corner. Without a gradient, no move.
  EXPECT_TRUE(test::near(
      move_to_hyperplane(test::row({.95, .5}), test::row({-3, -1}), torch::tensor({9.}, torch::kDouble), Norm::l1, {}),
      test::row({.05, .5}), 1e-12));
  EXPECT_TRUE(torch::equal(move_to_hyperplane(test::row({.95, .5}), test::row({0, 0}), excess, Norm::l1, {}),
                           test::row({0, 0})));
}

}  // namespace sparsight::apgd_l1_test
