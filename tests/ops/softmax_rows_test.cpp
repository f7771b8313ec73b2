#include "sparsight/ops/softmax_rows.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::softmax_rows_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kRagged[] = {1, 2, 7, 8, 16, 17, 100, 300, 1003};

// torch's softmax in fp64.
at::Tensor by_torch(const at::Tensor& x) { return at::softmax(x.to(torch::kDouble), 1); }

}  // namespace

// exp(0) and exp(ln 3): 1 and 3 of 4. exp(-1) and 1: 0.3678794 and 1 of 1.3678794, however large both are.
TEST(SoftmaxRows, ByHandAtEveryLevel) {
  const float log3 = std::log(3.0f);
  const at::Tensor x = torch::tensor({{0.f, log3}, {log3, 0.f}, {9999.f, 1e4f}, {-kInf, 5.f}});
  const at::Tensor want = torch::tensor({{0.25f, 0.75f}, {0.75f, 0.25f}, {0.2689414f, 0.7310586f}, {0.f, 1.f}});
  test::at_each_level([&](const std::string& level) { EXPECT_TRUE(test::near(softmax_rows(x), want, 1e-6)) << level; });
}

TEST(SoftmaxRows, AgreesWithTorchAtEveryLevelAndSize) {
  for (const int64_t rows : {0, 1, 33})
    for (const int64_t columns : kRagged)
      for (const double scale : {1.0, 30.0}) {
        const at::Tensor x = test::random_tensor({rows, columns}, 1, torch::kFloat) * scale;
        test::at_each_level([&](const std::string& level) {
          EXPECT_TRUE(test::near(softmax_rows(x), by_torch(x), 1e-6)) << level << " " << rows << " x " << columns;
          EXPECT_TRUE(torch::equal(softmax_rows(x.t().contiguous().t()), softmax_rows(x))) << level;
        });
      }
  EXPECT_EQ(softmax_rows(torch::zeros({3, 0})).sizes(), at::IntArrayRef({3, 0}));
}

// Either sign of NaN, wherever it stands, makes its row NaN and no other, as torch's.
TEST(SoftmaxRows, NanAndInfinityMakeTheirRowNan) {
  for (const int64_t columns : {8, 300})
    for (const float bad : {kNan, -kNan, kInf})
      for (const int64_t column : {int64_t{0}, int64_t{5}, columns - 1}) {
        at::Tensor x = test::random_tensor({3, columns}, 2, torch::kFloat);
        x[1][column] = bad;
        test::at_each_level([&](const std::string& level) {
          const at::Tensor out = softmax_rows(x);
          EXPECT_TRUE(out[1].isnan().all().item<bool>()) << level << " " << bad << " at " << column;
          for (const int64_t row : {0, 2}) EXPECT_TRUE(test::near(out[row], by_torch(x)[row], 1e-6)) << level;
        });
      }
  test::at_each_level([&](const std::string& level) {
    EXPECT_TRUE(softmax_rows(torch::full({1, 40}, -kInf)).isnan().all().item<bool>()) << level;
  });
}

TEST(SoftmaxRows, HasTheSameBitsForAnyNumberOfThreads) {
  const at::Tensor x = test::random_tensor({5000, 17}, 3, torch::kFloat);
  test::at_each_level([&](const std::string& level) {
    const auto with_threads = [&](int count) {
      const test::ThreadCount threads(count);
      return softmax_rows(x);
    };
    for (const int count : {2, 4}) EXPECT_TRUE(torch::equal(with_threads(1), with_threads(count))) << level;
  });
}

TEST(SoftmaxRows, GradientsFollowDifferences) {
  const at::Tensor x = test::random_tensor({4, 7}, 4, torch::kDouble), upstream = test::random_tensor({4, 7}, 5);
  EXPECT_LT(test::gradient_error([&] { return (softmax_rows(x) * upstream).sum(); }, {x}), 1e-8);
  const at::Tensor narrow = x.detach().to(torch::kFloat).requires_grad_(true);  // by the kernels
  (softmax_rows(narrow) * upstream.to(torch::kFloat)).sum().backward();
  EXPECT_TRUE(test::near(narrow.grad(), x.grad(), 1e-6));
}

TEST(SoftmaxRows, SecondDerivativesAreThoseOfTorch) {
  const auto second = [](const at::Tensor& values, const auto& softmax) {
    const at::Tensor x = values.detach().clone().requires_grad_(true);
    const at::Tensor loss = softmax(x).square().sum();
    const at::Tensor gradient = torch::autograd::grad({loss}, {x}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.square().sum()}, {x})[0];
  };
  const at::Tensor x = test::random_tensor({4, 7}, 6, torch::kFloat);
  const at::Tensor want = second(x.to(torch::kDouble), [](const at::Tensor& wide) { return at::softmax(wide, 1); });
  EXPECT_TRUE(test::near(second(x, softmax_rows), want, 1e-6));
}

TEST(SoftmaxRows, OtherShapesAndTypesAreErrors) {
  const std::string needs = "the softmax of rows needs a floating matrix [R,C], got ";
  EXPECT_EQ(testing::error_text([] { softmax_rows(torch::zeros({3})); }), needs + "Float [3]");
  EXPECT_EQ(testing::error_text([] { softmax_rows(torch::zeros({1, 3}, torch::kLong)); }), needs + "Long [1, 3]");
}

}  // namespace sparsight::softmax_rows_test
