#include "sparsight/ops/softmax_cross_entropy.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "sparsight/ops/ref/softmax_cross_entropy.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/live_bytes.h"
#include "tests/support/near.h"
#include "tests/support/property.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::softmax_cross_entropy_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kRagged[] = {1, 2, 7, 10, 16, 17, 100, 1000, 1003};

struct Case {
  at::Tensor logits, targets;
  double smoothing = 0;
  at::Tensor upstream;  // [B]
};

enum class Kind { labels, smoothed, soft };
constexpr Kind kKinds[] = {Kind::labels, Kind::smoothed, Kind::soft};

Case random_case(int64_t rows, int64_t classes, Kind kind, at::ScalarType type = torch::kFloat, uint64_t seed = 1) {
  Case c{test::random_tensor({rows, classes}, seed, type) * 3,
         {},
         kind == Kind::smoothed ? 0.1 : 0.0,
         test::random_tensor({rows}, seed + 1, type)};
  const at::Tensor shares = test::random_tensor({rows, classes}, seed + 2, type).softmax(1) * 1.5;
  c.targets = kind == Kind::soft ? shares : shares.argmax(1);
  return c;
}

// The losses, and the gradient of the logits.
std::pair<at::Tensor, at::Tensor> with_gradient(const Case& c) {
  const at::Tensor logits = c.logits.detach().clone().requires_grad_(true);
  const at::Tensor loss = softmax_cross_entropy(logits, c.targets, c.smoothing);
  loss.backward(c.upstream);
  return {loss.detach(), logits.grad()};
}

Case in_fp64(Case c) {
  for (at::Tensor* t : {&c.logits, &c.targets, &c.upstream})
    if (t->is_floating_point()) *t = t->to(torch::kDouble);
  return c;
}

// The same by torch's cross-entropy.
std::pair<at::Tensor, at::Tensor> by_torch(const Case& c) {
  const at::Tensor logits = c.logits.detach().clone().requires_grad_(true);
  const at::Tensor loss = at::cross_entropy_loss(logits, c.targets, {}, at::Reduction::None, -100, c.smoothing);
  loss.backward(c.upstream);
  return {loss.detach(), logits.grad()};
}

// Within 2e-6 of the largest finite element, and with the same infinities and NaN.
::testing::AssertionResult agree(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return ::testing::AssertionFailure() << got.sizes() << " and " << want.sizes();
  const at::Tensor a = got.to(torch::kDouble), b = want.to(torch::kDouble);
  const double largest = b.numel() > 0 ? b.nan_to_num(0, 0, 0).abs().max().item<double>() : 0;
  if (torch::allclose(a, b, 0, 2e-6 * (1 + largest), /*equal_nan=*/true)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got\n" << a << "\nexpected\n" << b;
}

at::Tensor make_rows(std::initializer_list<double> values, int64_t rows = 1) {
  return torch::tensor(at::ArrayRef<double>(values), torch::kFloat).view({rows, -1});
}
at::Tensor make_labels(std::initializer_list<int64_t> labels) { return torch::tensor(at::ArrayRef<int64_t>(labels)); }

// The losses and gradients of one row, at every level.
void expect_row(const at::Tensor& logits, const at::Tensor& targets, double smoothing, double loss,
                std::initializer_list<double> gradient) {
  test::at_each_level([&](const std::string& level) {
    const auto got = with_gradient({logits, targets, smoothing, torch::ones({1})});
    EXPECT_TRUE(agree(got.first, make_rows({loss}).view({1}))) << level;
    EXPECT_TRUE(agree(got.second, make_rows(gradient))) << level;
  });
}

}  // namespace

// softmax(0, ln 3) = (1/4, 3/4). Losses: -ln(3/4) = 0.2876821 and -ln(1/4) = 1.3862944. Gradients: upstream (p - one
// hot): 2 (1/4, 3/4 - 1) and -1 (1/4 - 1, 3/4).
TEST(SoftmaxCrossEntropy, LabelsByHandAtEveryLevel) {
  const double log3 = std::log(3.0);
  test::at_each_level([&](const std::string& level) {
    const auto [loss, gradient] =
        with_gradient({make_rows({0, log3, 0, log3}, 2), make_labels({1, 0}), 0, make_rows({2, -1}).view({2})});
    EXPECT_TRUE(test::near(loss, torch::tensor({0.2876821, 1.3862944}), 1e-6)) << level;
    EXPECT_TRUE(test::near(gradient, make_rows({0.5, -0.5, 0.75, -0.75}, 2), 1e-6)) << level;
  });
}

// Targets 0.8 (0, 1) + 0.2 / 2 = (0.1, 0.9): 0.1 1.3862944 + 0.9 0.2876821 = 0.3975433; 1/4 - 0.1 = 0.15.
TEST(SoftmaxCrossEntropy, LabelSmoothingByHandAtEveryLevel) {
  const at::Tensor logits = make_rows({0, std::log(3.0)});
  expect_row(logits, make_labels({1}), 0.2, 0.3975433, {0.15, -0.15});
  expect_row(logits, make_rows({0, 1}), 0.2, 0.3975433, {0.15, -0.15});
}

// Shares need not sum to 1: 1.3862944 + 0.5 0.2876821 = 1.5301354; 1.5 (1/4, 3/4) - (1, 0.5) = (-0.625, 0.625).
TEST(SoftmaxCrossEntropy, SoftTargetsByHandAtEveryLevel) {
  expect_row(make_rows({0, std::log(3.0)}), make_rows({1, 0.5}), 0, 1.5301354, {-0.625, 0.625});
}

TEST(SoftmaxCrossEntropy, AgreesWithTheReferenceAtEveryLevelAndSize) {
  for (const int64_t rows : {0, 1, 33})
    for (const int64_t classes : kRagged)
      for (const Kind kind : kKinds) {
        const Case c = random_case(rows, classes, kind), wide = in_fp64(c);
        const at::Tensor loss = ref::softmax_cross_entropy(wide.logits, wide.targets, c.smoothing);
        const at::Tensor gradient =
            ref::softmax_cross_entropy_gradient(wide.upstream, wide.logits, wide.targets, c.smoothing);
        const auto torchs = by_torch(wide);
        EXPECT_TRUE(test::near(loss, torchs.first, 1e-12)) << rows << " x " << classes;
        EXPECT_TRUE(test::near(gradient, torchs.second, 1e-12)) << rows << " x " << classes;
        test::at_each_level([&](const std::string& level) {
          const auto got = with_gradient(c);
          EXPECT_TRUE(agree(got.first, loss)) << level << " " << rows << " x " << classes;
          EXPECT_TRUE(agree(got.second, gradient)) << level << " " << rows << " x " << classes;
          const torch::NoGradGuard no_grad;
          EXPECT_TRUE(torch::equal(softmax_cross_entropy(c.logits, c.targets, c.smoothing), got.first)) << level;
        });
      }
}

TEST(SoftmaxCrossEntropy, AnEmptyBatchIsAnEmptyVector) {
  const at::Tensor loss = softmax_cross_entropy(torch::zeros({0, 3}), torch::zeros({0}, torch::kLong));
  EXPECT_EQ(loss.sizes(), at::IntArrayRef({0}));
}

// Any scale, with classes at -inf, some of them labels, +inf and NaN: as torch's cross-entropy in fp64.
TEST(SoftmaxCrossEntropy, AgreesWithTorchOnAnyLogitsAtEveryLevel) {
  test::for_all(
      [] {
        const int64_t rows = *test::from_to(0, 20), classes = *test::from_to(1, 1200);
        const Kind kind = *rc::gen::element(Kind::labels, Kind::smoothed, Kind::soft);
        const uint64_t seed = *test::any_seed();
        Case c = random_case(rows, classes, kind, torch::kFloat, seed);
        c.logits = c.logits * *rc::gen::element(0.0, 1.0, 30.0, 1e4, 1e30);
        const at::Tensor chance = test::random_tensor(c.logits.sizes(), seed + 3, torch::kFloat).abs();
        c.logits.masked_fill_(chance < *rc::gen::element(0.0, 0.7, 9.0), -kInf);  // 0.7: about half
        if (*rc::gen::arbitrary<bool>()) c.logits.masked_fill_(chance > 3, *rc::gen::element(kNan, kInf));
        const auto want = by_torch(in_fp64(c));
        test::at_each_level([&](const std::string& level) {
          const auto got = with_gradient(c);
          test::must_hold(agree(got.first, want.first), level + " loss");
          test::must_hold(agree(got.second, want.second), level + " gradient");
        });
      },
      150);
}

TEST(SoftmaxCrossEntropy, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Kind kind : kKinds) {
    const Case c = random_case(300, 1003, kind);
    test::at_each_level([&](const std::string& level) {
      const auto with_threads = [&](int count) {
        const test::ThreadCount threads(count);
        return with_gradient(c);
      };
      const auto one = with_threads(1);
      for (const int count : {2, 4}) {
        const auto other = with_threads(count);
        EXPECT_TRUE(torch::equal(one.first, other.first)) << level << ", " << count;
        EXPECT_TRUE(torch::equal(one.second, other.second)) << level << ", " << count;
      }
    });
  }
}

TEST(SoftmaxCrossEntropy, GradientsFollowDifferences) {
  for (const Kind kind : kKinds) {
    const Case c = random_case(4, 5, kind, torch::kDouble);
    const auto weighted = [&] { return (softmax_cross_entropy(c.logits, c.targets, c.smoothing) * c.upstream).sum(); };
    std::vector<at::Tensor> inputs{c.logits};
    if (kind == Kind::soft) inputs.push_back(c.targets);
    EXPECT_LT(test::gradient_error(weighted, inputs), 1e-8);
    // of the kernels, in fp32, beside what has just been checked
    const at::Tensor checked = c.logits.grad();
    const Case narrow{c.logits.detach().to(torch::kFloat), c.targets.detach(), c.smoothing,
                      c.upstream.to(torch::kFloat)};
    test::at_each_level([&](const std::string& level) {
      EXPECT_TRUE(test::near(with_gradient(narrow).second, checked, 2e-6)) << level;
    });
  }
}

// The Hessian is diag(p) - p p^T: for p = (1/4, 3/4) 3/16 (1, -1; -1, 1), times (2, 1) and an upstream gradient of 4:
// (3/4, -3/4). The first derivative in the direction (2, 1) for label 1 is 2/4 - 1/4, the derivative by upstream.
TEST(SoftmaxCrossEntropy, SecondDerivativesByHand) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor logits = make_rows({0, std::log(3.0)}).to(type).requires_grad_(true);
    const at::Tensor upstream = torch::full({1}, 4, type).requires_grad_(true);
    const at::Tensor loss = softmax_cross_entropy(logits, make_labels({1}));
    const at::Tensor gradient = torch::autograd::grad({loss}, {logits}, {upstream}, true, /*create_graph=*/true)[0];
    const auto second = torch::autograd::grad({(gradient * make_rows({2, 1}).to(type)).sum()}, {logits, upstream});
    EXPECT_TRUE(test::near(second[0], make_rows({0.75, -0.75}), 1e-6));
    EXPECT_TRUE(test::near(second[1], torch::tensor({0.25}), 1e-6));
  }
}

TEST(SoftmaxCrossEntropy, SecondDerivativesOfAnyTargetsAreThoseOfTorch) {
  const auto second = [](const Case& c, const auto& compute_loss) {
    const at::Tensor logits = c.logits.detach().clone().requires_grad_(true);
    const at::Tensor gradient =
        torch::autograd::grad({compute_loss(logits)}, {logits}, {c.upstream}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.square().sum()}, {logits})[0];
  };
  for (const Kind kind : kKinds) {
    const Case c = random_case(5, 17, kind), wide = in_fp64(c);
    const at::Tensor want = second(wide, [&](const at::Tensor& x) {
      return at::cross_entropy_loss(x, wide.targets, {}, at::Reduction::None, -100, c.smoothing);
    });
    const auto ours = [&](const at::Tensor& x) { return softmax_cross_entropy(x, c.targets, c.smoothing); };
    EXPECT_TRUE(agree(second(c, ours), want));
  }
}

// ln 2; 20000 + ln 2; and ln(1 + exp(-1)) = 0.3132617 with p = 0.7310586, of which a logsumexp near 1e4 in fp32 would
// keep three digits.
TEST(SoftmaxCrossEntropy, HugeLogitsKeepTheirDigits) {
  expect_row(make_rows({1e4, 1e4, -1e4}), make_labels({0}), 0, 0.6931472, {-0.5, 0.5, 0});
  expect_row(make_rows({1e4, 1e4, -1e4}), make_labels({2}), 0, 20000.6931472, {0.5, 0.5, -1});
  expect_row(make_rows({1e4, 1e4 - 1}), make_labels({0}), 0, 0.3132617, {-0.2689414, 0.2689414});
  expect_row(make_rows({-1e4, -1e4 - 1}), make_labels({0}), 0, 0.3132617, {-0.2689414, 0.2689414});
}

// (0, -inf, ln 3): p = (1/4, 0, 3/4).
TEST(SoftmaxCrossEntropy, AClassAtMinusInfinityHasProbabilityZero) {
  const at::Tensor logits = make_rows({0, -kInf, std::log(3.0)});
  expect_row(logits, make_labels({0}), 0, 1.3862944, {-0.75, 0, 0.75});
  expect_row(logits, make_labels({1}), 0, kInf, {0.25, -1, 0.75});
  expect_row(logits, make_labels({0}), 0.3, kInf, {0.25 - 0.8, -0.1, 0.75 - 0.1});
  expect_row(logits, make_rows({1, 0, 0}), 0, kNan, {-0.75, 0, 0.75});  // 0 times inf, as torch's
  expect_row(make_rows({-kInf, -kInf}), make_labels({0}), 0, kNan, {kNan, kNan});
  test::at_each_level([&](const std::string& level) {
    Case c = random_case(3, 1003, Kind::labels);
    c.targets = make_labels({700, 800, 1002});
    c.logits.narrow(1, 0, 600).fill_(-kInf);  // whole blocks of sums
    const auto masked = with_gradient(c);
    EXPECT_EQ(masked.second.narrow(1, 0, 600).count_nonzero().item<int64_t>(), 0) << level;
    c.logits = c.logits.narrow(1, 600, 403), c.targets = c.targets - 600;
    const auto rest = with_gradient(c);
    EXPECT_TRUE(agree(masked.first, rest.first)) << level;
    EXPECT_TRUE(agree(masked.second.narrow(1, 600, 403), rest.second)) << level;
  });
}

// Wherever in the row; other rows keep their values.
TEST(SoftmaxCrossEntropy, NanAndInfinityMakeTheirRowNan) {
  test::at_each_level([&](const std::string& level) {
    for (const Kind kind : kKinds)
      for (const double bad : {kNan, kInf})
        for (const int64_t place : {0, 5, 299, 300}) {
          Case c = random_case(3, 301, kind);
          const auto good = with_gradient(c);
          c.logits[1][place] = bad;
          const auto got = with_gradient(c);
          EXPECT_TRUE(got.first[1].isnan().item<bool>()) << level << " " << place;
          EXPECT_TRUE(got.second[1].isnan().all().item<bool>()) << level << " " << place;
          for (const int64_t row : {0, 2}) {
            EXPECT_TRUE(torch::equal(got.first[row], good.first[row])) << level << " " << place;
            EXPECT_TRUE(torch::equal(got.second[row], good.second[row])) << level << " " << place;
          }
        }
  });
}

TEST(SoftmaxCrossEntropy, TakesAnyStridesAndWidensNarrowTypes) {
  for (const Kind kind : kKinds) {
    const Case c = random_case(12, 7, kind);
    Case strided = c;
    strided.logits = c.logits.t().contiguous().t(),
    strided.targets = torch::stack({c.targets, c.targets}, -1).select(-1, 0);
    EXPECT_TRUE(torch::equal(with_gradient(strided).first, with_gradient(c).first));
    EXPECT_TRUE(torch::equal(with_gradient(strided).second, with_gradient(c).second));
    for (const auto type : {torch::kBFloat16, torch::kHalf}) {
      Case narrow = c, rounded = c;
      narrow.logits = c.logits.to(type), rounded.logits = narrow.logits.to(torch::kFloat);
      const auto got = with_gradient(narrow), want = with_gradient(rounded);
      EXPECT_TRUE(torch::equal(got.first, want.first));  // in fp32
      EXPECT_TRUE(torch::equal(got.second, want.second.to(type)));
    }
  }
}

// A loss and two numbers of fp32 per row; torch keeps 200 x 100 logarithms.
TEST(SoftmaxCrossEntropy, KeepsNoProbabilities) {
  const Case c = random_case(200, 100, Kind::labels);
  const at::Tensor logits = c.logits.requires_grad_(true);
  const at::Tensor warm = softmax_cross_entropy(logits, c.targets);
  const test::LiveBytes live;
  const at::Tensor loss = softmax_cross_entropy(logits, c.targets);
  EXPECT_LE(live.count(), 200 * 3 * 4 + 1024);
}

TEST(SoftmaxCrossEntropy, ShapesTypesAndLabelsThatDoNotFitAreErrors) {
  const at::Tensor logits = torch::zeros({2, 3});
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    EXPECT_EQ(testing::error_text([&] {
                softmax_cross_entropy(logits.to(type), make_labels({0, 3}));
              }),
              "cross-entropy of 3 classes needs labels from 0 to 2, got 3 in row 1");
    EXPECT_EQ(testing::error_text([&] {
                softmax_cross_entropy(logits.to(type), make_labels({-100, 0}));
              }),
              "cross-entropy of 3 classes needs labels from 0 to 2, got -100 in row 0");
  }
  const std::string targets = "cross-entropy of logits [2, 3] needs labels [2] of type Long or floating targets [2, 3]";
  EXPECT_EQ(testing::error_text([&] { softmax_cross_entropy(logits, make_labels({0})); }), targets + ", got Long [1]");
  EXPECT_EQ(testing::error_text([&] { softmax_cross_entropy(logits, torch::zeros({2})); }),
            targets + ", got Float [2]");
  EXPECT_EQ(testing::error_text([&] {
              softmax_cross_entropy(logits, torch::zeros({2, 3}, torch::kLong));
            }),
            targets + ", got Long [2, 3]");
  EXPECT_EQ(testing::error_text([&] {
              softmax_cross_entropy(torch::zeros({2, 0}), make_labels({0, 0}));
            }),
            "cross-entropy needs floating logits [B,K] with K >= 1, got Float [2, 0]");
  EXPECT_EQ(testing::error_text([&] {
              softmax_cross_entropy(logits, make_labels({0, 1}), 1);
            }),
            "label smoothing must be at least 0 and below 1, got 1");
}

}  // namespace sparsight::softmax_cross_entropy_test
