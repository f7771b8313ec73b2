// Threat models: units of epsilon, projections and random starts.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/attacks/random_start.h"
#include "tests/attacks/toy_classifier.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::threat_model_test {
namespace {

ThreatModel parse_threat(const Json& settings) {
  ThreatOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, settings, "attack");
  return make_threat(options);
}

std::string refusal(const Json& settings) {
  return testing::error_text<UsageError>([&] { parse_threat(settings); });
}

// Pixels of 0 and of 1 are among them, and gradients of 0, of both signs and NaN.
void expect_same_bits(at::ScalarType type, double epsilon, double step, const PixelRange& range = {}) {
  const ThreatModel threat{Norm::linf, epsilon, range};
  const at::Tensor x = (range.low + range.width() * (0.5 + 0.4 * test::random_tensor({3, 2, 7, 11}, 1)))
                           .clamp(range.low, range.high)
                           .to(type);
  at::Tensor gradient = test::random_tensor({3, 2, 7, 11}, 2).to(type);
  gradient.view(-1).narrow(0, 5, 60).zero_();
  gradient.view(-1)[70] = std::nan("");
  gradient.view(-1)[71] = -0.0;
  const Projection project(x, threat);
  at::Tensor v = x;
  for (int i = 0; i < 4; ++i) {  // the ball's surface is reached
    const at::Tensor expected = project(v + step * ascent_direction(gradient, Norm::linf));
    const at::Tensor got = project.step(v, gradient, step);
    EXPECT_TRUE(torch::equal(got, expected)) << type << " " << epsilon << " " << i;
    EXPECT_EQ(got.scalar_type(), type);
    v = got;
  }
}

}  // namespace

TEST(ThreatModel, A20_ConvertsEpsilonBetweenRanges) {
  EXPECT_DOUBLE_EQ(parse_threat({{"epsilon", "8/255"}}).epsilon, 8.0 / 255);
  EXPECT_DOUBLE_EQ(parse_threat({{"epsilon", 0.25}}).epsilon, 0.25);
  EXPECT_DOUBLE_EQ(parse_threat({{"epsilon", 8}, {"range", "0..255"}}).epsilon, 8.0 / 255);
  EXPECT_DOUBLE_EQ(parse_threat({{"epsilon", "1/127.5"}, {"range", "-1..1"}}).epsilon, 1.0 / 255);
  EXPECT_NEAR(in_range(parse_threat({{"epsilon", "8/255"}}), {-1, 1}).epsilon, 0.062745, 5e-7);
  EXPECT_EQ(in_range(parse_threat({{"norm", "l2"}, {"epsilon", "0.5"}}), {-1, 1}).epsilon, 1);
}

TEST(ThreatModel, A20_AttacksFindTheSameImageInEitherRange) {
  for (const Norm norm : {Norm::linf, Norm::l2, Norm::l1}) {
    const ThreatModel threat{norm, 0.2, {}}, other = in_range(threat, {-1, 1});
    PgdOptions options;
    options.steps = 7;
    AttackedFunction model = test::toy_model();
    AttackedFunction shifted([](const at::Tensor& x) { return test::toy_logits((x + 1) / 2); }, {-1, 1});
    const AttackBatch batch = test::toy_batch(), doubled{2 * batch.pixels - 1, batch.labels};
    const at::Tensor found = Pgd(options, {threat}).run(model, batch).pixels;
    const at::Tensor other_found = Pgd(options, {other}).run(shifted, doubled).pixels;
    EXPECT_GT((found - batch.pixels).abs().max().item<double>(), 0.05);
    EXPECT_TRUE(test::near((other_found + 1) / 2, found, 1e-6));
  }
}

TEST(ThreatModel, RefusesWhatIsNoEpsilon) {
  for (const Json& epsilon :
       {Json("8/0"), Json("-1/255"), Json("x"), Json(-0.1), Json("8/"), Json("nan"), Json("1/-2")})
    EXPECT_NE(refusal({{"epsilon", epsilon}}).find("must be a number or a fraction of at least 0"), std::string::npos)
        << epsilon;
  EXPECT_NE(refusal({{"norm", "l1"}}).find("l1"), std::string::npos);  // of trainings
  EXPECT_EQ(testing::error_text<UsageError>([] { make_threat({.norm = "l3"}); }),
            "the norm \"l3\": must be linf, l2 or l1");
  EXPECT_EQ(to_text(make_threat({.norm = "l1", .epsilon = "255", .range = "0..255"})),
            "l1, epsilon 1 of pixels in 0..1");
}

TEST(Projection, ClipsToTheBallAndThePixels) {
  const at::Tensor x = test::row({0.1, 0.5, 0.9, 0.5});
  const Projection linf(x, {Norm::linf, 0.2, {}});
  // Bounds of the ball: [-.1,.3] [.3,.7] [.7,1.1] [.3,.7].
  EXPECT_TRUE(test::near(linf(test::row({-1, 1, 2, 0.6})), test::row({0, 0.7, 1, 0.6}), 1e-12));
  EXPECT_TRUE(test::near(linf.to_ball(test::row({-1, 1, 2, 0.6})), test::row({-0.1, 0.7, 1.1, 0.6}), 1e-12));
  const Projection l2(x, {Norm::l2, 0.5, {}});
  // d = (0, 3, 0, 4) has length 5: scaled to (0, .3, 0, .4). d = (0, .1, 0, 0) is inside.
  EXPECT_TRUE(test::near(l2(x + test::row({0, 3, 0, 4})), test::row({0.1, 0.8, 0.9, 0.9}), 1e-12));
  EXPECT_TRUE(torch::equal(l2(x + test::row({0, 0.1, 0, 0})), x + test::row({0, 0.1, 0, 0})));
  // d = (0, 0, 5, 0) is scaled to .5, and the pixel 1.4 clipped to 1.
  EXPECT_TRUE(test::near(l2(x + test::row({0, 0, 5, 0})), test::row({0.1, 0.5, 1, 0.5}), 1e-12));
}

// x + 8/255 rounds up for about half of all fp32 pixels, by up to 1e-6 of epsilon.
TEST(Projection, NeverExceedsEpsilonInSinglePrecision) {
  const at::Tensor x = torch::linspace(0, 1, 4096, torch::kFloat).view({16, 256});
  for (const double epsilon : {8.0 / 255, 1.0 / 255, 1e-4}) {
    const ThreatModel threat{Norm::linf, epsilon, {}};
    for (const double sign : {1.0, -1.0}) {
      const at::Tensor moved = Projection(x, threat).to_ball(x + sign);
      const double largest = largest_perturbation(moved, x, Norm::linf);
      EXPECT_LE(largest, epsilon);
      EXPECT_GT(largest, epsilon - 1e-7);
    }
  }
}

// Pixels of fp32 round a Euclidean ball's border to either side.
TEST(Projection, TheLastOneLeavesNoImageBeyondAnL2Ball) {
  const at::Tensor x = test::random_tensor({64, 300}, 1, torch::kFloat).sigmoid();
  const ThreatModel threat{Norm::l2, 0.5, {}};
  const at::Tensor towards = x + test::random_tensor({64, 300}, 2, torch::kFloat) * 0.01;
  const at::Tensor rounded = Projection(x, threat).to_ball(x + (towards - x) * 100);
  const at::Tensor beyond = image_norms(rounded.to(at::kDouble) - x.to(at::kDouble), Norm::l2) > threat.epsilon;
  ASSERT_TRUE(beyond.any().item<bool>());
  ASSERT_FALSE(beyond.all().item<bool>());
  const at::Tensor inside = inside_ball(rounded, x, threat);
  EXPECT_LE(largest_perturbation(inside, x, Norm::l2), threat.epsilon);
  EXPECT_TRUE(torch::equal(inside.index({~beyond}), rounded.index({~beyond})));
  EXPECT_TRUE(test::near(inside, rounded, 1e-6));
}

TEST(ProjectedStep, IsTheOperationsOneAfterTheOther) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const double epsilon : {0.0, 1e-9, 1.0 / 255, 8.0 / 255, 0.3}) expect_same_bits(type, epsilon, 0.4 * epsilon);
  expect_same_bits(at::kFloat, 16.0 / 255, 4.0 / 255, {-1, 1});  // bounds of both signs
  expect_same_bits(at::kFloat, 8, 3, {0, 255});
}

TEST(ProjectedStep, A21_NoGradientNoMove) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({2, 5}, 3)).clamp(0, 1).to(torch::kFloat);
  EXPECT_TRUE(torch::equal(Projection(x, {}).step(x, torch::zeros_like(x), 0.1), x));
}

// Layouts other than that of memory.
TEST(ProjectedStep, TakesViews) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({4, 3, 2}, 3)).clamp(0, 1).permute({2, 1, 0});
  const at::Tensor gradient = test::random_tensor({2, 3, 4}, 4);
  EXPECT_TRUE(torch::equal(Projection(x, {}).step(x, gradient, 0.01),
                           Projection(x.contiguous(), {}).step(x.contiguous(), gradient, 0.01)));
}

TEST(Projection, A21_AscentDirectionOfZeroIsZero) {
  const at::Tensor g = torch::tensor({{0., 3., -4.}, {0., 0., 0.}}, torch::kDouble);
  EXPECT_TRUE(
      torch::equal(ascent_direction(g, Norm::linf), torch::tensor({{0., 1., -1.}, {0., 0., 0.}}, torch::kDouble)));
  EXPECT_TRUE(
      test::near(ascent_direction(g, Norm::l2), torch::tensor({{0., .6, -.8}, {0., 0., 0.}}, torch::kDouble), 1e-15));
  EXPECT_TRUE(test::near(ascent_direction(g, Norm::l2, kNormGuard),
                         torch::tensor({{0., .6, -.8}, {0., 0., 0.}}, torch::kDouble), 1e-11));
  // Gradients whose squares underflow in fp32 have a direction too.
  const at::Tensor tiny = torch::tensor({{3e-30f, -4e-30f}});
  EXPECT_TRUE(test::near(ascent_direction(tiny, Norm::l2), torch::tensor({{.6, -.8}}), 1e-6));
}

TEST(RandomStart, LiesInTheBallAndFollowsFromTheImagesNumber) {
  AttackBatch batch = {torch::full({40, 3, 4, 4}, 0.5, torch::kDouble), {torch::zeros({40}, torch::kLong)}};
  batch.image = torch::arange(40, torch::kLong) + 100;
  for (const Norm norm : {Norm::linf, Norm::l2, Norm::l1})
    for (const StartKind kind : {StartKind::ball, StartKind::surface}) {
      const AttackContext context{{norm, 0.25, {}}, 3};
      const at::Tensor start = random_start(batch, context, kind, "test", 0);
      const at::Tensor lengths = image_norms(start - batch.pixels, norm);
      EXPECT_LE(lengths.max().item<double>(), 0.25 * (1 + 1e-12));
      const double shortest = lengths.min().item<double>();
      EXPECT_EQ(shortest > 0.25 * (1 - 1e-12), kind == StartKind::surface) << shortest;
      const at::Tensor some = torch::tensor({31, 2, 17}, torch::kLong);
      EXPECT_TRUE(
          torch::equal(random_start(batch.select(some), context, kind, "test", 0), start.index_select(0, some)));
      EXPECT_FALSE(torch::equal(random_start(batch, context, kind, "test", 1), start));
      EXPECT_FALSE(torch::equal(random_start(batch, {context.threat, 4}, kind, "test", 0), start));
    }
}

// Uniform in a ball of D dimensions: the share of points within half the radius is 2^-D. In 2 dimensions 1/4; of 4000
// points, with a standard deviation of 0.007.
TEST(RandomStart, IsUniformInTheBall) {
  const AttackBatch batch{torch::full({4000, 2}, 0.5, torch::kDouble), {torch::zeros({4000}, torch::kLong)}};
  for (const Norm norm : {Norm::l2, Norm::l1}) {
    const AttackContext context{{norm, 0.4, {}}, 1};
    const at::Tensor start = random_start(batch, context, StartKind::ball, "test", 0);
    const double inner = (image_norms(start - batch.pixels, norm) < 0.2).to(torch::kDouble).mean().item<double>();
    EXPECT_NEAR(inner, 0.25, 0.03);
    // All four quadrants alike.
    const double right = (start > 0.5).all(1).to(torch::kDouble).mean().item<double>();
    EXPECT_NEAR(right, 0.25, 0.03);
  }
}

TEST(CheckPerturbation, FailsForWhatTheThreatForbids) {
  const ThreatModel threat{Norm::linf, 0.1, {}};
  const at::Tensor x = test::row({0.05, 0.5, 0.5, 0.95});
  EXPECT_NO_THROW(check_perturbation(x + 0.05, x, threat, true));
  EXPECT_THROW(check_perturbation(x + 0.11, x, threat, false), std::logic_error);
  EXPECT_THROW(check_perturbation(x + 0.06, x, threat, true), std::logic_error);
  EXPECT_NO_THROW(check_perturbation(x + 0.06, x, threat, false));
  EXPECT_THROW(check_perturbation(x * std::nan(""), x, threat, true), std::logic_error);
}

}  // namespace sparsight::threat_model_test
