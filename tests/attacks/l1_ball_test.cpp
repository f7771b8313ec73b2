// The l1 ball within a box: projections by hand and by bisection, sparse steps.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/l1_ball.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::l1_ball_test {
namespace {

at::Tensor projected(const std::vector<double>& x, const std::vector<double>& change, double epsilon) {
  const at::Tensor image = test::row(x);
  return project_l1(image + test::row(change), image, epsilon, {});
}

// One row, by 200 bisections of the multiplier lambda of the ball: coordinate i moves by min(max(|d_i| - lambda, 0),
// room_i) (the optimality conditions of the projection).
at::Tensor bisected(const at::Tensor& v, const at::Tensor& x, double epsilon, const PixelRange& range) {
  const at::Tensor d = v - x, room = torch::where(d > 0, range.high - x, x - range.low);
  const auto moves = [&](double lambda) { return torch::minimum((d.abs() - lambda).clamp_min(0), room); };
  double low = 0, high = d.abs().max().item<double>();
  if (moves(0).sum().item<double>() <= epsilon) high = 0;
  for (int i = 0; i < 200; ++i)
    (moves((low + high) / 2).sum().item<double>() > epsilon ? low : high) = (low + high) / 2;
  return x + d.sign() * moves(high);
}

}  // namespace

// lambda, and so the changes, by hand:
//   d = (1,1), room (.5,.5), epsilon .6: both shrink, 2 (1 - .7) = .6.      epsilon 1 and 2: the box alone, (.5,.5).
//   d = (.6,.2), room (.1,.5), epsilon .2: the second alone shrinks, .1 + (.2 - .1) = .2. The ball first would give
//       (.2,0), and the box then (.1,0): half of the ball.
//   d = (1,1,0), room (.1,.5,.5), epsilon .5: .1 + (1 - .6) = .5.
//   d = (-1,-.3), room (.1,.5), epsilon .3: .1 + (.3 - .1) = .3.
TEST(L1Ball, ProjectsAsByHand) {
  EXPECT_TRUE(test::near(projected({.5, .5}, {1, 1}, .6), test::row({.8, .8}), 1e-12));
  EXPECT_TRUE(test::near(projected({.5, .5}, {1, 1}, 1), test::row({1, 1}), 1e-12));
  EXPECT_TRUE(test::near(projected({.5, .5}, {1, 1}, 2), test::row({1, 1}), 1e-12));
  EXPECT_TRUE(test::near(projected({.9, .5}, {.6, .2}, .2), test::row({1, .6}), 1e-12));
  EXPECT_TRUE(test::near(projected({.9, .5, .5}, {1, 1, 0}, .5), test::row({1, .9, .5}), 1e-12));
  EXPECT_TRUE(test::near(projected({.1, .5}, {-1, -.3}, .3), test::row({0, .3}), 1e-12));
  EXPECT_TRUE(torch::equal(projected({.5, .25}, {.125, -.0625}, .25), test::row({.625, .1875})));  // inside
  EXPECT_TRUE(torch::equal(projected({.3, .7}, {1, -1}, 0), test::row({.3, .7})));
}

// Without the box: (.3, -.1, .05) with epsilon .3 shrinks by .05 each, and so does the ball of Projection.
TEST(L1Ball, ProjectsOntoTheBallAlone) {
  const at::Tensor x = test::row({.5, .05, .5}), v = x + test::row({.3, -.1, .05});
  const at::Tensor expected = x + test::row({.25, -.05, 0});
  const Projection project(x, {Norm::l1, .3, {}});
  EXPECT_TRUE(test::near(project.to_ball(v), expected, 1e-12));
  EXPECT_TRUE(test::near(project(v), expected, 1e-12));  // the second pixel comes to the edge
  EXPECT_TRUE(test::near(project.to_ball(x + test::row({0, -9, 0})), x + test::row({0, -.3, 0}), 1e-12));
  EXPECT_TRUE(test::near(project(x + test::row({0, -9, 0})), x + test::row({0, -.05, 0}), 1e-12));
}

TEST(L1Ball, ProjectionsAgreeWithBisection) {
  for (const int64_t columns : {1, 2, 7, 60})
    for (const PixelRange& range : {PixelRange{0, 1}, PixelRange{-1, 1}})
      for (const double spread : {.05, .5, 3.0}) {
        const at::Tensor x = (range.low + range.width() * (.5 + .4 * test::random_tensor({40, columns}, 1)))
                                 .clamp(range.low, range.high);
        const at::Tensor v = x + spread * test::random_tensor({40, columns}, 2);
        for (const double epsilon : {.01, .3, 2.0, 10.0}) {
          const at::Tensor found = project_l1(v, x, epsilon, range);
          for (int64_t r = 0; r < 40; ++r)
            ASSERT_TRUE(test::near(found[r], bisected(v[r], x[r], epsilon, range), 1e-9)) << columns << " " << epsilon;
          check_perturbation(found, x, {Norm::l1, epsilon, range}, true);
        }
      }
}

// In fp32 the pixels of a point are rounded towards the image, so that their sum is no larger than before.
TEST(L1Ball, NeverExceedsEpsilonInSinglePrecision) {
  const at::Tensor x = test::random_tensor({64, 300}, 1, torch::kFloat).sigmoid();
  const at::Tensor v = x + test::random_tensor({64, 300}, 2, torch::kFloat);
  for (const double epsilon : {.1, 12.0}) {
    const at::Tensor found = Projection(x, {Norm::l1, epsilon, {}})(v);
    EXPECT_EQ(found.scalar_type(), torch::kFloat);
    EXPECT_LE(largest_perturbation(found, x, Norm::l1), epsilon * (1 + 1e-12));
    EXPECT_GT(image_norms(found.to(torch::kDouble) - x.to(torch::kDouble), Norm::l1).min().item<double>(),
              epsilon - 300 * 1e-7);
    EXPECT_GE(found.min().item<double>(), 0);
    EXPECT_LE(found.max().item<double>(), 1);
    EXPECT_LE(largest_perturbation(inside_ball(found, x, {Norm::l1, epsilon, {}}), x, Norm::l1), epsilon);
  }
}

TEST(L1Ball, TheLastProjectionShrinksWhatIsBeyond) {
  const at::Tensor x = test::row({.5, .5, .5}), beyond = test::row({.5, .7, .4}) + test::row({0, 1e-9, 0});
  const at::Tensor inside = inside_ball(beyond, x, {Norm::l1, .3, {}});
  EXPECT_LE(largest_perturbation(inside, x, Norm::l1), .3);
  EXPECT_TRUE(test::near(inside, beyond, 2e-9));
}

TEST(SparseAscent, TakesTheLargestGradients) {
  const auto count = [](const std::vector<int64_t>& counts) { return torch::tensor(counts, torch::kLong); };
  const at::Tensor g = test::row({3, -1, 0, 2});
  EXPECT_TRUE(test::near(sparse_ascent(g, count({1})), test::row({1, 0, 0, 0}), 1e-15));
  EXPECT_TRUE(test::near(sparse_ascent(g, count({2})), test::row({.5, 0, 0, .5}), 1e-15));
  EXPECT_TRUE(test::near(sparse_ascent(g, count({4})), test::row({1, -1, 0, 1}) / 3, 1e-15));  // one is 0
  EXPECT_TRUE(test::near(sparse_ascent(-g, count({99})), test::row({-1, 1, 0, -1}) / 3, 1e-15));
  EXPECT_TRUE(torch::equal(sparse_ascent(0 * g, count({2})), 0 * g));
  EXPECT_TRUE(test::near(sparse_ascent(torch::cat({g, g}), count({1, 2})),
                         torch::cat({test::row({1, 0, 0, 0}), test::row({.5, 0, 0, .5})}), 1e-15));
  const at::Tensor broken = test::row({1, std::nan(""), -1, 0});
  EXPECT_TRUE(sparse_ascent(broken, count({2})).isfinite().all().item<bool>());
}

// Pixels: at the edge as in the image; come to the edge; at the other edge as in the image; come to that edge.
TEST(SparseAscent, LeavesOutWhatCanNeverMove) {
  const at::Tensor x = test::row({1, .5, 0, .5}), v = test::row({1, 1, 0, 0});
  EXPECT_TRUE(torch::equal(movable_gradient(test::row({1, 1, -1, -1}), v, x, {}), test::row({0, 1, 0, -1})));
  EXPECT_TRUE(torch::equal(movable_gradient(test::row({-1, -1, 1, 1}), v, x, {}), test::row({-1, -1, 1, 1})));
  EXPECT_TRUE(torch::equal(movable_gradient(test::row({1, 1, -1, -1}), v, x, {-1, 2}), test::row({1, 1, -1, -1})));
}

}  // namespace sparsight::l1_ball_test
