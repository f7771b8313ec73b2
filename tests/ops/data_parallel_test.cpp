#include "sparsight/ops/data_parallel.h"

#include <atomic>

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight {
namespace {

// Image n of the batch gives (n + 1) times the sum of its squares, so its gradient is 2 (n + 1) x.
at::Tensor weighted_squares(const at::Tensor& images, int64_t first) {
  const at::Tensor factor = torch::arange(first + 1, first + 1 + images.size(0), torch::kDouble).unsqueeze(1);
  return images.square().sum(1, true) * factor;
}

struct Called {
  at::Tensor result, gradient;
  int calls;
};

Called call(int threads, int64_t images) {
  const test::ThreadCount count(threads);
  const at::Tensor x = test::random_tensor({images, 5}, 1, torch::kDouble).requires_grad_(true);
  std::atomic<int> calls{0};
  const at::Tensor result = data_parallel(x, [&](const at::Tensor& some, int64_t first) {
    ++calls;
    return weighted_squares(some, first);
  });
  result.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), 2 * x.detach() * torch::arange(1, images + 1).unsqueeze(1)));
  return {result.detach(), x.grad(), calls};
}

}  // namespace

TEST(DataParallel, GivesWhatOneCallGives) {
  const Called one = call(1, 37);
  for (const int threads : {2, 3, 4}) {
    const Called several = call(threads, 37);
    EXPECT_EQ(several.calls, threads);
    EXPECT_TRUE(torch::equal(several.result, one.result)) << threads;
    EXPECT_TRUE(torch::equal(several.gradient, one.gradient)) << threads;
  }
  EXPECT_EQ(one.calls, 1);
}

TEST(DataParallel, CallsOnceForFewImagesAndWithoutGradients) {
  EXPECT_EQ(call(4, 31).calls, 1);
  EXPECT_EQ(call(4, 32).calls, 4);
  const test::ThreadCount count(2);
  int calls = 0;
  const auto counted = [&](const at::Tensor& some, int64_t first) {
    ++calls;
    return weighted_squares(some, first);
  };
  const at::Tensor x = torch::ones({64, 5}, torch::kDouble);
  data_parallel(x, counted);
  {
    const at::NoGradGuard no_grad;
    data_parallel(x.clone().requires_grad_(true), counted);
  }
  EXPECT_EQ(calls, 2);
}

TEST(DataParallel, GoesBackTwiceOverAKeptGraphButHasNoSecondDerivative) {
  const test::ThreadCount count(2);
  const at::Tensor x = torch::ones({16, 5}, torch::kDouble).requires_grad_(true);
  const at::Tensor result = data_parallel(x, weighted_squares).sum();
  for (int pass = 1; pass <= 2; ++pass) {
    result.backward({}, /*retain_graph=*/true);
    EXPECT_TRUE(torch::allclose(x.grad()[0], pass * torch::full({5}, 2.0, torch::kDouble)));
  }
  EXPECT_EQ(sparsight::testing::error_text([&] { result.backward({}, false, /*create_graph=*/true); }),
            "images that threads share have no second derivative; call backward without create_graph");
}

TEST(DataParallel, PassesOnWhatACallRaises) {
  const test::ThreadCount count(2);
  const at::Tensor x = torch::ones({16, 5}).requires_grad_(true);
  EXPECT_EQ(sparsight::testing::error_text([&] {
              data_parallel(x, [](const at::Tensor& some, int64_t first) -> at::Tensor {
                if (first > 0) fail("no image ", first);
                return some;
              });
            }),
            "no image 8");
}

}  // namespace sparsight
