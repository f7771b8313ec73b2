// Steps of algorithms by hand, with the model of hand_case.h and plain SGD with rate 1.
#include <cmath>
#include <set>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/dg/algorithms/domain_mixup.h"
#include "sparsight/dg/algorithms/gradient_masks.h"
#include "sparsight/dg/algorithms/iga.h"
#include "sparsight/dg/algorithms/mldg.h"
#include "sparsight/dg/algorithms/rsc.h"
#include "sparsight/dg/algorithms/sagnet.h"
#include "sparsight/dg/algorithms/selfreg.h"
#include "sparsight/dg/algorithms/transfer.h"
#include "tests/dg/algorithms/hand_case.h"
#include "tests/support/near.h"

namespace sparsight::dg_hand_steps_test {
namespace {

using test::near;

at::Tensor matrix(const std::vector<double>& values) { return at::tensor(values).view({2, 2}); }

void set_head(const test::DomainCase& made, const std::vector<double>& values) {
  const at::NoGradGuard no_grad;
  test::find_weight(*made.model, "head.weight").copy_(matrix(values));
}

at::Tensor head(const test::DomainCase& made) { return test::find_weight(*made.model, "head.weight"); }

}  // namespace

// lambda .25 of (1,0) and .75 of (0,1). Logits (0, ln 3) have the probabilities (1/4, 3/4): .25 ln 4 + .75 ln(4/3) =
// .346574 + .215762.
TEST(DomainMixup, G32_MixesTwoImagesByHand) {
  const MixedPair pair{{test::hand_batch(0, {1}, {0}), test::hand_batch(1, {-1}, {1})}, .25};
  EXPECT_TRUE(near(mixed_images(pair), at::tensor({.25, .75}).view({1, 1, 1, 2}), 1e-6));
  EXPECT_TRUE(near(mixed_risk(at::tensor({0., std::log(3)}).view({1, 2}), pair), .562335, 1e-5));
}

// Both domains have the same image and label, so that any lambda gives the step of ERM: from W = 0, p - y = (-.5,.5).
TEST(DomainMixup, G32_AStepByHand) {
  const test::DomainCase made = test::hand_case();
  test::update(*test::make_algorithm(made, "domain_mixup"),
               {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {0})});
  EXPECT_TRUE(near(head(made), matrix({.5, -.5, -.5, .5}), 1e-5));
}

TEST(DomainMixup, PairsEveryDomainWithAnother) {
  std::set<int64_t> orders;
  for (uint64_t step = 0; step < 20; ++step) {
    std::vector<Batch> domains;
    for (int64_t e = 0; e < 3; ++e) domains.push_back(test::hand_batch(e, {1}, {0}));
    const auto pairs = random_pairs(domains, .2, {7, step});
    std::set<int64_t> first, second;
    for (const MixedPair& pair : pairs) {
      const auto a = pair.of.a.domains.item<int64_t>(), b = pair.of.b.domains.item<int64_t>();
      EXPECT_NE(a, b);
      first.insert(a);
      second.insert(b);
      EXPECT_GE(pair.lambda, 0);
      EXPECT_LE(pair.lambda, 1);
    }
    EXPECT_EQ(first.size(), 3u);
    EXPECT_EQ(second.size(), 3u);
    orders.insert(pairs[0].of.a.domains.item<int64_t>() * 3 + pairs[0].of.b.domains.item<int64_t>());
  }
  EXPECT_GT(orders.size(), 1u);
}

// W = [[1,0],[0,0]]: risks .313262 and 1.313262, eta = 1: q = (e^.313262, e^1.313262) / sum = (.268941, .731059). The
// loss is .084249 + .960072; with p = (.731059, .268941), W moves by (p - q) times (1,-1).
TEST(GroupDro, G32_AStepByHand) {
  const test::DomainCase made = test::hand_case();
  set_head(made, {1, 0, 0, 0});
  const auto algorithm = test::make_algorithm(made, "group_dro", {{"eta", 1}});
  const UpdateResult result = test::update(*algorithm, {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {1})});
  EXPECT_NEAR(test::mean_metrics(result).at("loss").get<double>(), 1.044321, 1e-5);
  EXPECT_TRUE(near(test::state_tensor(*algorithm, "group_dro/q"), at::tensor({.268941, .731059}), 1e-5));
  EXPECT_TRUE(near(head(made), matrix({1 - .462117, .462117, .462117, -.462117}), 1e-5));
}

// Two domains with the same image and label 0, W = 0: grad R_i has the entries -+ .5, a step of rate 1 gives the logits
// (1,-1) with p = .880797, so that grad R_j has -+ .119203. beta = .5: (.5 + .5 * .119203) / 2 = .279801.
TEST(Mldg, G32_AStepByHand) {
  const test::DomainCase made = test::hand_case();
  const auto algorithm = test::make_algorithm(made, "mldg", {{"beta", .5}, {"meta_test", 1}});
  test::update(*algorithm, {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {0})});
  EXPECT_TRUE(near(head(made), matrix({.279801, -.279801, -.279801, .279801}), 1e-5));
}

TEST(Mldg, PairsTrainingDomainsWithTestDomainsInTurn) {
  const auto make_pairs = [](const std::vector<size_t>& order, int64_t tests) {
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const MetaPair& pair : meta_pairs(order, tests)) pairs.emplace_back(pair.train, pair.test);
    return pairs;
  };
  using Pairs = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(make_pairs({2, 0, 3, 1, 4}, 2), (Pairs{{2, 1}, {0, 4}, {3, 1}}));
  EXPECT_EQ(make_pairs({1, 0, 2}, 2), (Pairs{{1, 0}}));
  EXPECT_EQ(make_pairs({1, 0}, 2), (Pairs{{1, 0}}));
}

// Rows (0,0,3): mean 1, variance 3, content (-1,-1,2)/sqrt(3); (2,4,6): mean 4, variance 4, content (-1,0,1).
// Style: .25 of the own and .75 of the other: mean 3.25, variance 3.75; the second row keeps its own.
// Content of the other, own statistics: (-1,0,1) sqrt(3) + 1 and (-1,-1,2) 2/sqrt(3) + 4.
TEST(SagNet, G32_RandomisesTwoVectorsByHand) {
  const at::Tensor x = at::tensor({0., 0., 3., 2., 4., 6.}).view({2, 3}).requires_grad_(true);
  const at::Tensor others = at::tensor({1, 0}, at::kLong), alpha = at::tensor({.25, 1.}).view({2, 1});
  EXPECT_TRUE(near(with_random_style(x, alpha, others),
                   at::tensor({2.131966, 2.131966, 5.486068, 2., 4., 6.}).view({2, 3}), 1e-4));
  const at::Tensor content = with_random_content(x, others);
  EXPECT_TRUE(near(content, at::tensor({-.732051, 1., 2.732051, 2.845299, 2.845299, 6.309401}).view({2, 3}), 1e-4));
  // The other's content is detached.
  const at::Tensor gradient = torch::autograd::grad({content[0].sum()}, {x})[0];
  EXPECT_TRUE(near(gradient[1], at::zeros({3}), 1e-6));
}

// The features (1,-1) and (-1,1) have the same style, so that the first step is that of ERM: from W = 0 with images
// (1,0) of label 0 and (0,1) of label 1, each moves W by half of [[.5,-.5],[-.5,.5]]. The head stays in the third step.
TEST(SagNet, G32_TheHeadFollowsTheContentOnly) {
  const test::DomainCase made = test::hand_case();
  const auto algorithm = test::make_algorithm(made, "sagnet", {{"adversary", 5}});
  const at::Tensor style = test::state_tensor(*algorithm, "style/0.weight").clone();
  test::update(*algorithm, {test::hand_batch(0, {1, -1}, {0, 1})});
  EXPECT_TRUE(near(head(made), matrix({.5, -.5, -.5, .5}), 1e-4));
  EXPECT_FALSE(at::equal(test::state_tensor(*algorithm, "style/0.weight"), style));
}

// The quantile 2/3 of (.1,.5,.3) is .3 + .2/3; the median of the falls (.1,.4) is .25.
TEST(Rsc, G32_MasksByHand) {
  EXPECT_TRUE(
      near(rsc_feature_mask(at::tensor({.1, .5, .3}).view({1, 3}), 1.0 / 3), at::tensor({1., 0., 1.}).view({1, 3}), 0));
  EXPECT_TRUE(near(rsc_image_mask(at::tensor({.1, .4}), .5), at::tensor({1., 0.}), 0));
}

// W = [[1,0],[0,2]], half of features and images. A: features (1,-1), label 0: logits (1,-2), gradient of the true
// logit (1,0), muted features (0,-1), true probability falls from s(3) = .952574 to s(2) = .880797. B: (-1,1), label 1:
// logits
// (-1,2), gradient (0,2), muted (-1,0), from .952574 to s(1) = .731059: B falls more and is muted.
// Loss: (ln(1+e^-3) + ln(1+e^-1)) / 2 = (.048587 + .313262) / 2. W moves by (.047426 (1,-1), and .268941 (1,0)) / 2.
TEST(Rsc, G32_AStepByHand) {
  const test::DomainCase made = test::hand_case();
  set_head(made, {1, 0, 0, 2});
  const auto algorithm = test::make_algorithm(made, "rsc", {{"drop_features", .5}, {"drop_images", .5}});
  const UpdateResult result = test::update(*algorithm, {test::hand_batch(0, {1, -1}, {0, 1})});
  EXPECT_NEAR(test::mean_metrics(result).at("loss").get<double>(), .180925, 1e-5);
  EXPECT_TRUE(near(head(made), matrix({1.158184, -.023713, -.158184, 2.023713}), 1e-4));
}

// Signs agree in the first and last entry; means (2,0,-1), two thirds are kept.
TEST(GradientMasks, ByHand) {
  const at::Tensor g = at::tensor({1., 1., -1., 3., -1., -1.}).view({2, 3});
  EXPECT_TRUE(near(and_masked(g, 1), at::tensor({3., 0., -1.5}), 1e-6));
  // tau = .5, k = 4: tanh(4 (1 - .5) / 2) = .761594, below tau 0, variance 0: tanh(infinity) = 1. Mean .587198.
  EXPECT_TRUE(near(sand_masked(g, {.tau = .5, .k = 4}), at::tensor({2.593994, 0., -1.703003}), 1e-5));
}

// Domains that contradict each other in everything move nothing.
TEST(GradientMasks, ContradictingDomainsMoveNothing) {
  const test::DomainCase made = test::hand_case();
  test::update(*test::make_algorithm(made, "and_mask"), {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {1})});
  EXPECT_TRUE(near(head(made), matrix({0, 0, 0, 0}), 0));
}

// The step along the gradient of mean R + penalty sum |grad R_e - mean|², against numeric derivatives in fp64 of the
// formula: grad R_e = mean over images of (p - y) times the features.
TEST(Iga, AStepFollowsItsObjective) {
  constexpr double kPenalty = .3;
  const std::vector<double> start{.3, -.2, .1, .4};
  const std::vector<std::pair<int, int64_t>> domains[] = {{{1, 0}, {-1, 0}}, {{1, 1}, {1, 0}}};
  const auto objective = [&](const std::vector<double>& w) {
    double risk = 0, g[2][4] = {};
    for (int e = 0; e < 2; ++e)
      for (const auto& [sign, label] : domains[e]) {
        const double f[] = {1. * sign, -1. * sign};
        const double l[] = {w[0] * f[0] + w[1] * f[1], w[2] * f[0] + w[3] * f[1]};
        const double sum = std::exp(l[0]) + std::exp(l[1]);
        risk += (std::log(sum) - l[label]) / 4;
        for (int k = 0; k < 2; ++k)
          for (int d = 0; d < 2; ++d) g[e][2 * k + d] += (std::exp(l[k]) / sum - (k == label)) * f[d] / 2;
      }
    double spread = 0;
    for (int i = 0; i < 4; ++i) spread += (g[0][i] - g[1][i]) * (g[0][i] - g[1][i]) / 2;
    return risk + kPenalty * spread;
  };
  std::vector<double> expected = start;
  for (size_t i = 0; i < 4; ++i) {
    std::vector<double> above = start, below = start;
    above[i] += 1e-5;
    below[i] -= 1e-5;
    expected[i] -= (objective(above) - objective(below)) / 2e-5;
  }
  const test::DomainCase made = test::hand_case();
  set_head(made, start);
  const UpdateResult result = test::update(*test::make_algorithm(made, "iga", {{"penalty", kPenalty}}),
                                           {test::hand_batch(0, {1, -1}, {0, 0}), test::hand_batch(1, {1, 1}, {1, 0})});
  EXPECT_NEAR(test::mean_metrics(result).at("loss").get<double>(), objective(start), 1e-5);
  EXPECT_TRUE(near(head(made), matrix(expected), 1e-4));
}

TEST(SelfReg, PartnersAreOfTheSameClass) {
  const at::Tensor labels = at::tensor({2, 0, 2, 1, 0, 2}, at::kLong);
  std::set<std::vector<int64_t>> seen;
  for (uint64_t step = 0; step < 10; ++step) {
    const at::Tensor partners = same_class_partners(labels, RandomStream(1, "test", step));
    EXPECT_TRUE(at::equal(labels.index_select(0, partners), labels));
    EXPECT_EQ(partners[3].item<int64_t>(), 3);  // alone in its class
    std::vector<int64_t> all(partners.const_data_ptr<int64_t>(), partners.const_data_ptr<int64_t>() + 6);
    seen.insert(all);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 6u);  // a permutation
  }
  EXPECT_GT(seen.size(), 1u);
}

// Both domains have the same image and label, so that the gap is 0. From W = 0, p - y = (-.5,.5) and the features are
// (1,-1): a step of plain SGD with rate .5 adds .5 (.5,-.5; -.5,.5), whatever the optimiser and its decay.
TEST(Transfer, GdaIsAStepOfPlainSgdByHand) {
  const test::DomainCase made =
      test::hand_case({"optimizer.name=adam", "optimizer.lr=0.5", "optimizer.weight_decay=0.3"});
  set_head(made, {0, 0, 0, 0});
  const auto algorithm = test::make_algorithm(made, "transfer", {{"gda", true}});
  const std::vector<Batch> domains{test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {0})};
  test::update(*algorithm, domains);
  EXPECT_TRUE(near(head(made), matrix({.25, -.25, -.25, .25}), 1e-5));
  // Without momentum or decay, the next step has the gradient at these weights alone: logits (.5,-.5), p(wrong) =
  // 1 / (1 + e) = .268941, and so .5 (.268941) more.
  test::update(*algorithm, domains, 1);
  EXPECT_TRUE(near(head(made), matrix({.384471, -.384471, -.384471, .384471}), 1e-5));
}

// Logits (1,-1) for both domains, whose labels differ: risks ln(1 + e^-2) = .126928 and 2.126928, mean 1.126928. A
// burn-in of 1.5 updates is updates 0 and 1; then it is the quantile .75 of the risks, which lies above their mean.
TEST(Eqrm, ABurnInThatIsNoWholeNumberIsRoundedUp) {
  for (const uint64_t step : {0, 1, 2}) {
    const test::DomainCase made = test::hand_case();
    set_head(made, {.5, -.5, -.5, .5});
    const UpdateResult result = test::update(*test::make_algorithm(made, "eqrm", {{"burn_in", 1.5}}),
                                             {test::hand_batch(0, {1}, {0}), test::hand_batch(1, {1}, {1})}, step);
    const double loss = test::mean_metrics(result).at("loss");
    if (step < 2)
      EXPECT_NEAR(loss, 1.126928, 1e-5) << step;
    else
      EXPECT_GT(loss, 1.5) << step;
  }
}

// (3,4) is at distance 5 from the centre.
TEST(Transfer, ProjectsOntoABall) {
  at::Tensor a = at::tensor({3.}), b = at::tensor({5.});
  const NamedTensors centre{{"a", at::tensor({0.})}, {"b", at::tensor({1.})}};
  project_to_ball({{"a", a}, {"b", b}}, centre, 6);
  EXPECT_EQ(a.item<double>(), 3);
  project_to_ball({{"a", a}, {"b", b}}, centre, 1);
  EXPECT_NEAR(a.item<double>(), .6, 1e-6);
  EXPECT_NEAR(b.item<double>(), 1.8, 1e-6);
}

}  // namespace sparsight::dg_hand_steps_test
