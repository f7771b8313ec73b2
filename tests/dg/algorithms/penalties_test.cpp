// Penalties on risks, logits and features by hand, and when they begin. In the model of hand_case.h, W = [[1,0],[0,0]]
// gives images of features (1,-1) the logits (1,0) and probabilities (.731059,.268941): risk .313262 for label 0 and
// 1.313262 for label 1.
#include <cmath>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/dg/algorithms/adrmx.h"
#include "sparsight/dg/algorithms/cad.h"
#include "sparsight/dg/algorithms/eqrm.h"
#include "sparsight/dg/algorithms/feature_distance.h"
#include "sparsight/dg/algorithms/fishr.h"
#include "sparsight/dg/algorithms/information_bottleneck.h"
#include "sparsight/dg/algorithms/irm.h"
#include "sparsight/dg/algorithms/miro.h"
#include "sparsight/dg/algorithms/rdm.h"
#include "sparsight/dg/algorithms/trm.h"
#include "tests/dg/algorithms/hand_case.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::dg_penalties_test {
namespace {

using test::near;

// Adam with rate 0, so that W stays.
test::DomainCase still_case() {
  test::DomainCase made = test::hand_case({"optimizer.name=adam", "optimizer.lr=0"});
  const at::NoGradGuard no_grad;
  test::find_weight(*made.model, "head.weight").copy_(at::tensor({1.f, 0.f, 0.f, 0.f}).view({2, 2}));
  return made;
}

double number(const UpdateResult& result, const std::string& name) { return test::mean_metrics(result).at(name); }

// How many updates Adam has made since it was new.
double adam_steps(const Algorithm& algorithm) {
  return test::state_tensor(algorithm, "optimizer/head.weight/step").item<double>();
}

void expect_annealed(const std::string& name, const std::vector<Batch>& batches, double risk, double penalty) {
  constexpr double kLambda = 10;
  const test::DomainCase made = still_case();
  const auto algorithm = test::make_algorithm(made, name, {{"lambda", kLambda}, {"anneal", 2}});
  for (uint64_t step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    const UpdateResult result = test::update(*algorithm, batches, step);
    EXPECT_NEAR(number(result, "penalty"), penalty, 1e-5);
    EXPECT_NEAR(number(result, "loss"), risk + (step < 2 ? 1 : kLambda) * penalty, 1e-4);
    EXPECT_EQ(adam_steps(*algorithm), step < 2 ? step + 1 : step - 1);  // a new Adam in step 2
  }
}

}  // namespace

// One domain, labels 0 and 1: g = sum_k (p_k - y_k) logit_k is -.268941 of the even image and .731059 of the odd one,
// their product -.196612; the risk is (.313262 + 1.313262) / 2 = .813262.
TEST(Irm, G25_WeighsOneBeforeTheAnnealStepAndResetsAdamInIt) {
  expect_annealed("irm", {test::hand_batch(0, {1, 1}, {0, 1})}, .813262, -.196612);
}

// Risks .313262 and 1.313262: mean .813262, variance .25.
TEST(Vrex, G25_WeighsOneBeforeTheAnnealStepAndResetsAdamInIt) {
  expect_annealed("vrex", {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {1})}, .813262, .25);
}

// The definition: a scalar on the logits.
TEST(Irm, ItsPenaltyIsTheProductOfTheScalesGradients) {
  const at::Tensor logits = test::random_tensor({6, 3}, 1);
  Batch batch;
  batch.labels = at::tensor({0, 1, 2, 2, 1, 0}, at::kLong);
  const at::Tensor scale = at::ones({}, at::kDouble).set_requires_grad(true);
  const auto gradient = [&](int64_t first) {
    const auto part = [&](const at::Tensor& x) { return x.slice(0, first, std::nullopt, 2); };
    return torch::autograd::grad({at::cross_entropy_loss(part(logits) * scale, part(batch.labels))}, {scale})[0];
  };
  EXPECT_TRUE(near(irm_penalty(logits, batch), gradient(0) * gradient(1), 1e-12));
}

// Means (1,1) and (1,0): mean of (0,1)² is .5. Covariances [[2,2],[2,2]] and [[2,0],[0,0]]: (0+4+4+4)/4 = 3.
TEST(FeatureDistance, G26_CoralMatchesAHandComputedCase) {
  const at::Tensor a = at::tensor({0.f, 0.f, 2.f, 2.f}).view({2, 2}), b = at::tensor({0.f, 0.f, 2.f, 0.f}).view({2, 2});
  EXPECT_TRUE(near(coral_distance(a, b), 3.5, 1e-6));
  EXPECT_TRUE(near(coral_distance(a, a), 0, 1e-6));
  EXPECT_TRUE(near(mean_pair_distance({a, b, a}, coral_distance), (3.5 + 0 + 3.5) / 3, 1e-6));
}

// a = {0,2}, b = {1}, one width 1: mean K(a,a) = (2 + 2 e^-4)/4 = .509158, K(b,b) = 1, mean K(a,b) = e^-1 = .367879.
// All widths, a = {0}, b = {1}: sum over g of 2 (1 - e^-g) = .001999 + .019900 + .190325 + 1.264241 + 1.999909 + 2 + 2.
TEST(FeatureDistance, G26_MmdMatchesAHandComputedCase) {
  const at::Tensor a = at::tensor({0.f, 2.f}).view({2, 1}), b = at::tensor({1.f}).view({1, 1});
  EXPECT_TRUE(near(mmd_distance(a, b, {1}), .509158 + 1 - 2 * .367879, 1e-5));
  EXPECT_TRUE(near(mmd_distance(a, a, {1}), 0, 1e-6));
  EXPECT_TRUE(near(mmd_distance(a.narrow(0, 0, 1), b), 7.476375, 1e-5));
}

// The objective adds gamma times the distance: two domains of the same image have none, so that the loss is the risk.
TEST(Coral, G26_IdenticalDomainsHaveNoPenalty) {
  for (const char* name : {"coral", "mmd"}) {
    const auto algorithm = test::make_algorithm(still_case(), name, {{"gamma", 7}});
    const UpdateResult result =
        test::update(*algorithm, {test::hand_batch(0, {1, -1}, {0, 0}), test::hand_batch(1, {1, -1}, {0, 0})});
    EXPECT_NEAR(number(result, "penalty"), 0, 1e-6) << name;
    // The image (-1,1) has the logits (-1,0): the risk of label 0 is ln(1 + e).
    EXPECT_NEAR(number(result, "loss"), (.313262 + 1.313262) / 2, 1e-5) << name;
  }
}

// K = 2, D = 1, logits 0: p - y = (-.5,.5). Domain a: features 1 and 3, so that the gradients of the weights are
// -+ .5 and -+ 1.5 with variance .25 each; of the biases 0. Domain b: features 1 and 1, variance 0. Deviations from
// the mean are (.125,.125,0,0), their mean square .0078125.
TEST(Fishr, G29_PenaltyByHand) {
  const at::Tensor logits = at::zeros({2, 2}), labels = at::zeros({2}, at::kLong);
  const at::Tensor a = gradient_variances(logits, labels, at::tensor({1.f, 3.f}).view({2, 1}), {});
  const at::Tensor b = gradient_variances(logits, labels, at::ones({2, 1}), {});
  EXPECT_TRUE(near(a, at::tensor({.25, .25, 0., 0.}), 1e-7));
  EXPECT_TRUE(near(fishr_penalty(at::stack({a, b})), .0078125, 1e-9));
}

TEST(Fishr, G29_VariancesEqualThoseOfGradientsOfSingleImages) {
  constexpr int64_t kImages = 5, kWidth = 4, kClasses = 3;
  const at::Tensor features = test::random_tensor({kImages, kWidth}, 1);
  const at::Tensor weight = test::random_tensor({kClasses, kWidth}, 2).requires_grad_(true);
  const at::Tensor bias = test::random_tensor({kClasses}, 3).requires_grad_(true);
  const at::Tensor labels = at::tensor({0, 2, 1, 1, 0}, at::kLong), logits = at::linear(features, weight, bias);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < kImages; ++i) {
    const at::Tensor loss = at::cross_entropy_loss(logits.narrow(0, i, 1), labels.narrow(0, i, 1));
    const auto g = torch::autograd::grad({loss}, {weight, bias}, {}, /*retain_graph=*/true);
    rows.push_back(at::cat({g[0].flatten(), g[1]}));
  }
  const at::Tensor gradients = at::stack(rows);
  const at::Tensor expected = (gradients - gradients.mean(0)).square().mean(0);
  EXPECT_TRUE(near(gradient_variances(logits, labels, features, {}), expected, 1e-12));
  EXPECT_TRUE(near(gradient_variances(logits, labels, features, {.has_bias = false}),
                   expected.narrow(0, 0, kClasses * kWidth), 1e-12));
}

// lambda counts from the anneal step on, where Adam is new.
TEST(Fishr, G29_BeginsAtItsAnnealStep) {
  const auto algorithm = test::make_algorithm(still_case(), "fishr", {{"lambda", 1000}, {"anneal", 1}, {"ema", 0.5}});
  const std::vector<Batch> batches{test::hand_batch(0, {1, -1}, {0, 0}), test::hand_batch(1, {1, 1}, {0, 0})};
  const UpdateResult first = test::update(*algorithm, batches, 0), second = test::update(*algorithm, batches, 1);
  const double risk = (3 * .313262 + 1.313262) / 4;
  EXPECT_NEAR(number(first, "loss"), risk, 1e-5);
  EXPECT_NEAR(number(second, "loss"), risk + 1000 * number(second, "penalty"), 1e-2);
  // The running variances v, v/2 + v/2 = v ... times 1/(1 - .5): 1 and 1.5 times those of the batch, squared.
  EXPECT_GT(number(first, "penalty"), 0);
  EXPECT_NEAR(number(second, "penalty") / number(first, "penalty"), 2.25, 1e-4);
  EXPECT_EQ(adam_steps(*algorithm), 1);
}

// s starts at .1 and z = z0, so that every layer's mean is ln(.1), half of it -1.151293.
TEST(Miro, G31_RegulariserAtTheStart) {
  const at::Tensor z = test::random_tensor({2, 3, 4, 4}, 1, at::kFloat), b = at::full({3}, miro_start(.1));
  EXPECT_TRUE(near(miro_term(z, z, b), -1.151293, 1e-5));
  const at::Tensor tokens = test::random_tensor({2, 5, 3}, 1, at::kFloat);
  EXPECT_TRUE(near(miro_term(tokens, tokens + 1, b), -1.151293 + 5, 1e-4));  // (1²/.1)/2

  const test::DomainCase made =
      test::domain_case({"model.name=vit", "model.size=custom", "model.width=16", "model.depth=2", "model.heads=2",
                         "model.patch=4", "moe.blocks=[]", "optimizer.name=adam"},
                        {1, 8, 8, 2});
  const auto algorithm = test::make_algorithm(made, "miro", {{"lambda", .1}});
  Batch batch;
  batch.images = test::random_tensor({4, 1, 8, 8}, 2, at::kFloat).abs();
  batch.labels = at::tensor({0, 1, 1, 0}, at::kLong);
  batch.domains = at::zeros({4}, at::kLong);
  const at::Tensor logits = made.model->forward({.images = batch.images}).logits;
  const UpdateResult result = test::update(*algorithm, {batch});
  EXPECT_NEAR(number(result, "penalty"), 3 * -1.151293, 1e-4);  // patch embedding and two blocks
  EXPECT_NEAR(number(result, "loss"), at::cross_entropy_loss(logits, batch.labels).item<double>() + .1 * 3 * -1.151293,
              1e-4);
}

// Similarities 1, 0, 0 of images 0 and 1, 0 and 2, 1 and 2. Shares of other domains: e/(e+1), all, 1/2; so that
// -(log) is .313262, 0, .693147 with the mean .335470, divided by .07.
TEST(Cad, MatchesAHandComputedCase) {
  const at::Tensor z = at::tensor({1.f, 1.f, 0.f}).view({3, 1}), labels = at::zeros({3}, at::kLong);
  const at::Tensor domains = at::tensor({0, 1, 0}, at::kLong);
  EXPECT_TRUE(near(cad_loss(z, labels, domains, {.temperature = 1}, false), .335470 / .07, 1e-4));
  // Classes apart: image 2 is alone in its class. Images 0 and 1 are each other's only candidates: log 1.
  EXPECT_TRUE(near(cad_loss(z, at::tensor({0, 0, 1}, at::kLong), domains, {.temperature = 1}, true), 0, 1e-6));
  // Nothing to compare.
  EXPECT_TRUE(near(cad_loss(z, at::tensor({0, 1, 2}, at::kLong), domains, {}, true), 0, 1e-6));
}

// Variances (2,8) and (0,0) per dimension: means 5 and 0.
TEST(InformationBottleneck, IsTheMeanVarianceOfFeatures) {
  const at::Tensor a = at::tensor({0.f, 0.f, 2.f, 4.f}).view({2, 2});
  EXPECT_TRUE(near(mean_feature_variance({a, at::ones({3, 2})}), 2.5, 1e-6));
}

// Losses (1,3) and (0,0): the first domain is the worst. Variances that divide by N - 1: of (1,3) 2, of all four 2.
TEST(Rdm, MatchesAHandComputedCase) {
  const std::vector<at::Tensor> losses{at::tensor({1.f, 3.f}), at::zeros({2})};
  EXPECT_TRUE(near(risk_variances(losses), 4, 1e-6));
  EXPECT_TRUE(near(risk_distribution_distance(losses),
                   mmd_distance(losses[0].view({2, 1}), at::tensor({1.f, 3.f, 0.f, 0.f}).view({4, 1}),
                                {1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3})
                       .item<double>(),
                   1e-6));
  EXPECT_TRUE(near(risk_distribution_distance({at::ones({2}), at::ones({2})}), 0, 1e-6));
}

// Two risks, 0 and 1: by symmetry the median is .5, and both have the derivative .5.
TEST(Eqrm, TheQuantileOfTheRisks) {
  at::Tensor risks = at::tensor({0., 1.}).requires_grad_(true);
  const at::Tensor median = risk_quantile(risks, .5);
  EXPECT_TRUE(near(median, .5, 1e-9));
  EXPECT_TRUE(near(torch::autograd::grad({median}, {risks})[0], at::tensor({.5, .5}), 1e-6));
  // h = 1.06 * .707107 * 2^-.2 = .652511: q solves the equation.
  const double q = risk_quantile(risks, .9).item<double>(), h = .652511;
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
  EXPECT_NEAR((phi(q / h) + phi((q - 1) / h)) / 2, .9, 1e-5);
  const at::Tensor uneven = at::tensor({.2, .9, 1.4, .3});
  EXPECT_LT(test::gradient_error([&] { return risk_quantile(uneven, .75); }, {uneven}), 1e-6);
  EXPECT_TRUE(near(risk_quantile(at::ones({3}), .75), 1, 1e-6));
}

// One class-0 pair in two domains and one image of class 1, all features equal: every pair has the same term, so that
// images 0 and 1 have the share 1/2 (up to 1e-5): 2 ln 2 / (2 + 1).
TEST(Adrmx, ContrastiveLossByHand) {
  const at::Tensor labels = at::tensor({0, 0, 1}, at::kLong), domains = at::tensor({0, 1, 0}, at::kLong);
  EXPECT_TRUE(near(domain_contrastive_loss(at::ones({3, 2}), labels, domains), 2 * .693147 / 3, 1e-4));
}

// K = 2, D = 1, weight and bias 0, one image with feature 1: the Hessian of the cross entropy in the weight is
// p (1 - p) [[1,-1],[-1,1]] = [[.25,-.25],[-.25,.25]]. It halves v = (1,-1), so that the terms are v, v/2, v/4, ...:
// the sum of 11 is (2 - 2^-10) v.
TEST(Trm, InverseHessianByHand) {
  const at::Tensor weight = at::zeros({2, 1}).requires_grad_(true), v = at::tensor({1.f, -1.f}).view({2, 1});
  EXPECT_TRUE(near(inverse_hessian_product(at::ones({1, 1}), at::zeros({1}, at::kLong), weight, at::zeros({2}), v),
                   (2 - 1. / 1024) * v, 1e-5));
}

}  // namespace sparsight::dg_penalties_test
