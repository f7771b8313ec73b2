// FAB and Square: moves onto hyperplanes, schedules, constraints, and that they fool an undefended model.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/fab/fab.h"
#include "sparsight/attacks/fab/hyperplane.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/run/observed_model.h"
#include "sparsight/attacks/square/square.h"
#include "sparsight/attacks/square/square_l2.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::boundary_attacks_test {
namespace {

// The move of one row after the time s: every coordinate in its helpful direction, up to the box.
std::vector<double> move_after(double s, const at::Tensor& x, const at::Tensor& w, double excess, Norm norm) {
  std::vector<double> d;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double xi = x[i].item<double>(), wi = w[i].item<double>(),
                 speed = norm == Norm::linf ? (wi != 0) : std::abs(wi);
    const double sign = (wi > 0) == (excess > 0) ? -1 : 1, room = sign > 0 ? 1 - xi : xi;
    d.push_back(wi == 0 || excess == 0 ? 0 : sign * std::min(s * speed, room));
  }
  return d;
}

// The same by 200 bisections of the time.
at::Tensor bisected_move(const at::Tensor& x, const at::Tensor& w, double excess, Norm norm) {
  const auto gained = [&](double s) {
    double sum = 0;
    const std::vector<double> d = move_after(s, x, w, excess, norm);
    for (size_t i = 0; i < d.size(); ++i)
      sum -= d[i] * w[static_cast<int64_t>(i)].item<double>() * (excess > 0 ? 1 : -1);
    return sum;
  };
  double low = 0, high = 1e6;
  for (int i = 0; i < 200; ++i) (gained((low + high) / 2) < std::abs(excess) ? low : high) = (low + high) / 2;
  return torch::tensor(move_after(high, x, w, excess, norm), torch::kDouble);
}

// A linear classifier of 4 classes on [2,5,6] images, so far undefended that random squares fool it.
at::Tensor image_logits(const at::Tensor& x) {
  static const at::Tensor w = test::random_tensor({4, 60}, 3);
  return (x.flatten(1) - 0.5).matmul(w.t());
}

AttackBatch linear_images(int64_t count) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 2, 5, 6}, 8)).clamp(0, 1);
  return {x, {image_logits(x).argmax(1)}};
}

}  // namespace

TEST(Hyperplane, A32_MovesAgreeWithBisection) {
  const int64_t rows = 60, columns = 7;
  const at::Tensor x = (0.5 + 0.4 * test::random_tensor({rows, columns}, 1)).clamp(0, 1);
  at::Tensor w = test::random_tensor({rows, columns}, 2);
  w.select(1, 3).zero_();
  const at::Tensor excess = test::random_tensor({rows}, 3) * 2;
  excess[5] = 0.0;
  for (const Norm norm : {Norm::linf, Norm::l2}) {
    const at::Tensor moves = move_to_hyperplane(x, w, excess, norm, {});
    int64_t unreached = 0;
    for (int64_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(test::near(moves[r], bisected_move(x[r], w[r], excess[r].item<double>(), norm), 1e-9)) << r;
      unreached += std::abs((moves[r] * w[r]).sum().item<double>() + excess[r].item<double>()) > 1e-9;
    }
    EXPECT_GT(unreached, 0);
    EXPECT_LT(unreached, 30);
  }
}

// Without the box in the way: -excess w / ||w||^2, and -excess sign(w) / ||w||_1.
TEST(Hyperplane, HasTheClosedFormsInsideTheBox) {
  const at::Tensor x = test::row({.5, .5, .5}), w = test::row({1, -2, 2}), excess = torch::tensor({.3}, torch::kDouble);
  EXPECT_TRUE(test::near(move_to_hyperplane(x, w, excess, Norm::l2, {}), -.3 * w / 9, 1e-12));
  EXPECT_TRUE(test::near(move_to_hyperplane(x, w, excess, Norm::linf, {}), -.3 * w.sign() / 5, 1e-12));
  // From -1..1 the box is farther away: room 1.5 below, where 0..1 leaves 0.5.
  const at::Tensor far = torch::tensor({6.}, torch::kDouble);
  EXPECT_TRUE(test::near(move_to_hyperplane(x, test::row({1, 0, 0}), far, Norm::linf, {-1, 1}), test::row({-1.5, 0, 0}),
                         1e-12));
  EXPECT_TRUE(test::near(move_to_hyperplane(x, w * 0, far, Norm::l2, {}), x * 0, 0));
}

// Two classes, z = (w x, 0): the closest boundary point of a linear model is found at once, and FAB ends next to it.
TEST(Fab, A32_FindsTheBoundaryOfALinearModel) {
  const at::Tensor w = test::row({1, -2, 2});
  AttackedFunction model([&](const at::Tensor& x) {
    const at::Tensor z = ((x - 0.5) * w).sum(1, true) + 0.3;
    return torch::cat({z, torch::zeros_like(z)}, 1);
  });
  AttackBatch batch{test::row({.5, .5, .5}), {torch::tensor({0}, torch::kLong)}, torch::zeros({1}, torch::kLong)};
  for (const bool targeted : {false, true})
    for (const Norm norm : {Norm::linf, Norm::l2, Norm::l1}) {
      batch.labels.target = targeted ? torch::tensor({1}, torch::kLong) : at::Tensor();
      const double exact = .3 / (norm == Norm::linf ? 5 : norm == Norm::l2 ? 3 : 2);
      const FabRun run = run_fab(model, batch, {{norm, 1, {}}}, {.iterations = 20}, batch.pixels, 0);
      EXPECT_GE(run.distance.item<double>(), exact);
      EXPECT_LE(run.distance.item<double>(), exact * 1.06);
      EXPECT_NEAR(image_norms(run.closest - batch.pixels, norm).item<double>(), run.distance.item<double>(), 1e-15);
    }
}

TEST(Fab, A32_KeepsItsConstraintsAndLowersRobustAccuracy) {
  const AttackBatch batch = test::toy_images(25);
  const at::Tensor clean = classified_correctly(test::toy_logits(batch.pixels), batch.labels.label);
  for (const Norm norm : {Norm::linf, Norm::l2}) {
    const ThreatModel threat{norm, .1, {}};
    FabTargetedOptions targeted;
    FabOptions untargeted;
    targeted.steps = untargeted.steps = 20;
    targeted.restarts = untargeted.restarts = 2;
    for (const Fab& attack : {Fab(targeted, {threat, 2}), Fab(untargeted, {threat, 2})}) {
      AttackedFunction model = test::toy_model();
      const AttackResult result = attack.run(model, batch);
      check_perturbation(result.pixels, batch.pixels, threat, true);
      EXPECT_LT(result.correct.sum().item<int64_t>(), clean.sum().item<int64_t>() / 2);
      // What is not fooled is returned as it is.
      const at::Tensor moved = (result.pixels != batch.pixels).any(1);
      EXPECT_TRUE(torch::equal(moved, clean & ~result.correct));
    }
  }
}

// The classifier above, with the weights (1,-2,2) and the excess .3: distances of .06, .1 and .15. An image that is
// misclassified as it is has the distance 0; one beyond epsilon has one if asked for.
TEST(Fab, SaysHowFarTheClosestMisclassifiedPointIs) {
  const at::Tensor w = test::row({1, -2, 2});
  AttackedFunction model([&](const at::Tensor& x) {
    const at::Tensor z = ((x - 0.5) * w).sum(1, true) + 0.3;
    return torch::cat({z, torch::zeros_like(z)}, 1);
  });
  const AttackBatch batch{torch::full({2, 3}, .5, torch::kDouble), {torch::tensor({0, 1}, torch::kLong)}};
  for (const Norm norm : {Norm::linf, Norm::l2, Norm::l1}) {
    const double exact = .3 / (norm == Norm::linf ? 5 : norm == Norm::l2 ? 3 : 2);
    for (const bool targeted : {false, true})
      for (const bool asked : {false, true})
        for (const double share : {.5, 2.0}) {
          FabTargetedOptions options;
          options.steps = 20;
          options.distances = asked;
          options.restarts = 2;
          const AttackContext context{{norm, share * exact, {}}, 1};
          const FabOptions& untargeted = options;
          const Fab attack = targeted ? Fab(options, context) : Fab(untargeted, context);
          const AttackResult found = attack.run(model, batch);
          ASSERT_TRUE(found.distance.defined());
          EXPECT_EQ(found.distance[1].item<double>(), 0);
          const double distance = found.distance[0].item<double>();
          EXPECT_EQ(std::isfinite(distance), asked || share > 1) << distance;
          if (std::isfinite(distance)) {
            EXPECT_GE(distance, exact * (1 - 1e-12));
            EXPECT_LE(distance, exact * 1.06);
          }
          const at::Tensor moved = image_norms(found.pixels - batch.pixels, norm);
          EXPECT_NEAR(moved[0].item<double>(), share > 1 ? distance : 0, 1e-12);
          EXPECT_EQ(moved[1].item<double>(), 0);
        }
  }
}

// With 4 classes there are 3 others, so 3 gradients for each image and step: that of z_y - z_y is 0 and says nothing.
TEST(Fab, A32_UntargetedTakesTheGradientsOfTheOtherClasses) {
  AttackedFunction inner = test::toy_model();
  ObservedModel model(inner, false);
  AttackBatch batch = test::toy_images(6);
  batch.image = torch::arange(6, torch::kLong);
  run_fab(model, batch, {{Norm::linf, .1, {}}}, {.iterations = 5}, batch.pixels, 0);
  EXPECT_EQ(model.cost().gradients, 3 * 6 * 5);
  EXPECT_EQ(model.gradients().images, 3 * 6 * 5);
  EXPECT_EQ(model.gradients().zero, 0);
}

TEST(Square, A32_AreasOfTheSchedule) {
  const std::pair<int64_t, double> areas[] = {
      {0, .8},    {10, .8},     {11, .4},      {50, .4},      {51, .2},       {200, .2},       {201, .1},
      {501, .05}, {1001, .025}, {2001, .0125}, {4000, .0125}, {4001, .00625}, {6001, .003125}, {8001, .0015625}};
  for (const auto& [query, area] : areas) EXPECT_DOUBLE_EQ(square_area(.8, query), area) << query;
}

TEST(Square, A32_KeepsItsConstraintsAndLowersRobustAccuracy) {
  const AttackBatch batch = linear_images(30);
  SquareOptions options;
  options.queries = 200;
  for (const ThreatModel& threat : {ThreatModel{Norm::linf, .05, {}}, ThreatModel{Norm::l2, .25, {}}}) {
    AttackContext context{threat, 2};
    std::vector<double> margins(30, 1e9);
    context.observe = [&](const AttackStep& step) {
      for (int64_t i = 0; i < step.image.size(0); ++i) {
        double& margin = margins[static_cast<size_t>(step.image[i].item<int64_t>())];
        EXPECT_LE(-step.best_loss[i].item<double>(), margin);  // the margin never grows
        margin = -step.best_loss[i].item<double>();
      }
      check_perturbation(step.pixels, batch.pixels.index_select(0, step.image), threat, true);
    };
    AttackedFunction model(image_logits);
    const AttackResult result = Square(options, context).run(model, batch);
    EXPECT_EQ(result.cost.gradients, 0);
    EXPECT_LE(result.cost.queries, 30 * (200 + 3));
    EXPECT_LT(result.correct.sum().item<int64_t>(), 20);
    check_perturbation(result.pixels, batch.pixels, threat, true);
  }
}

// Side 3: one row above, its centre column 1 + 1/4 from the rings 0 and 1, the others 1/4; two rows below, centred on
// the second one of them. Each half and the whole have norm 1; turning is left to the caller.
TEST(Square, A32_BumpsHaveTwoHalvesOfOppositeSigns) {
  const at::Tensor bump = square_bump(3, torch::empty({0}, torch::kDouble));
  const double upper = std::sqrt(1.25 * 1.25 + 2 * .0625), lower = std::sqrt(1.25 * 1.25 + 5 * .0625),
               root = std::sqrt(2);
  const at::Tensor expected = torch::tensor({{.25 / upper, 1.25 / upper, .25 / upper},
                                             {-.25 / lower, -.25 / lower, -.25 / lower},
                                             {-.25 / lower, -1.25 / lower, -.25 / lower}},
                                            torch::kDouble) /
                              root;
  EXPECT_TRUE(test::near(bump, expected, 1e-12));
  EXPECT_TRUE(test::near(square_bump(1, bump), test::row({-1}), 0));
}

// Each query is the mean of `passes` passes. With the noise +1, -1, +1, ... on both logits' difference of 0.5 a single
// pass would be misclassified every second time; the mean of 4 passes never is.
TEST(Square, A59_QueriesOfAModelWithNoiseAreMeans) {
  int64_t pass_number = 0;
  AttackedFunction model(
      [&](const at::Tensor& x, const AttackPass&) {
        ModelOutput output;
        const double noise = ++pass_number % 2 == 0 ? 1 : -1;
        output.logits = torch::tensor({0.5 + noise, 0.0}, torch::kDouble).expand({x.size(0), 2});
        return output;
      },
      /*randomised=*/true);
  const AttackBatch batch{torch::full({1, 1, 4, 4}, 0.5, torch::kDouble), {torch::zeros({1}, torch::kLong)}};
  SquareOptions options;
  options.queries = 6;
  options.passes = 4;
  const AttackResult result = Square(options, {{Norm::linf, .1, {}}, 1}).run(model, batch);
  EXPECT_TRUE(result.correct.item<bool>());
  // 10 passes before and 10 after say whether it is right; the start and 6 queries take 4 each.
  EXPECT_EQ(result.cost.queries, 10 + 7 * 4 + 10);
}

TEST(Square, RefusesVectorsAndTinyImages) {
  AttackedFunction model = test::toy_model();
  EXPECT_NE(testing::error_text([&] { Square({}, {}).run(model, test::toy_batch()); }).find("[B,C,H,W]"),
            std::string::npos);
}

}  // namespace sparsight::boundary_attacks_test
