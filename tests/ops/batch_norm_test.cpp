#include "sparsight/ops/batch_norm.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/error.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::batch_norm_test {
namespace {

constexpr double kEpsilon = 1e-3;

// More positions than a task has (256), and channels below and above those of a vector.
const std::vector<std::vector<int64_t>>& shapes() {
  static const std::vector<std::vector<int64_t>> all{
      {2, 1, 1, 1}, {1, 3, 4, 5}, {3, 17, 7, 9}, {5, 70, 11, 10}, {2, 130, 16, 17}};
  return all;
}

struct Leaves {
  at::Tensor x, weight, bias;
};
Leaves make_leaves(const std::vector<int64_t>& shape, at::ScalarType type) {
  const auto leaf = [&](const at::Tensor& x) { return x.to(type).clone().requires_grad_(true); };
  return {leaf(test::random_tensor(shape, 1) * 3 + 2), leaf(test::random_tensor({shape[1]}, 2)),
          leaf(test::random_tensor({shape[1]}, 3))};
}

// The output, the moments of the batch, then the gradients of x, weight and bias.
std::vector<at::Tensor> results(const NormedBatch& normed, const Leaves& l) {
  const at::Tensor grad = test::random_tensor(normed.y.sizes(), 4).to(normed.y.scalar_type());
  std::vector<at::Tensor> all{normed.y.detach(), normed.mean, normed.variance};
  for (const at::Tensor& g : torch::autograd::grad({normed.y}, {l.x, l.weight, l.bias}, {grad})) all.push_back(g);
  return all;
}
std::vector<at::Tensor> our_results(const std::vector<int64_t>& shape) {
  const Leaves l = make_leaves(shape, torch::kFloat);
  return results(batch_norm_maps(l.x, l.weight, l.bias, kEpsilon), l);
}
std::vector<at::Tensor> exact_results(const std::vector<int64_t>& shape) {
  const Leaves l = make_leaves(shape, torch::kDouble);
  at::Tensor mean = at::zeros({shape[1]}, torch::kDouble), variance = at::ones({shape[1]}, torch::kDouble);
  const at::Tensor y = at::batch_norm(l.x, l.weight, l.bias, mean, variance, true, 1, kEpsilon, false);
  return results({y, mean, variance}, l);
}

double error(const at::Tensor& value, const at::Tensor& exact) {
  return ((value.to(torch::kDouble) - exact).abs().max() / exact.abs().max().clamp_min(1)).item<double>();
}

}  // namespace

// 1, 2, 3, 6: mean 3, variance 14 / 4, unbiased 14 / 3. With gamma = 2, beta = 1 and epsilon = 0.5 the divisor is 2, so
// y = x - 2. The gradient (4, 0, 0, 0) has the mean 1, and with normal = (-1, -0.5, 0, 1.5) the mean of grad * normal
// is -1: x's gradient is grad - 1 + normal = (2, -1.5, -1, 0.5); gamma's is -4 and beta's 4.
TEST(BatchNormMaps, IsWorkedOutByHand) {
  const at::Tensor x = torch::tensor({1.0F, 2.0F, 3.0F, 6.0F}).view({2, 1, 1, 2}).requires_grad_(true);
  const at::Tensor weight = torch::tensor({2.0F}).requires_grad_(true),
                   bias = torch::tensor({1.0F}).requires_grad_(true);
  const NormedBatch normed = batch_norm_maps(x, weight, bias, 0.5);
  EXPECT_TRUE(torch::allclose(normed.y.flatten(), torch::tensor({-1.0F, 0.0F, 1.0F, 4.0F}), 1e-6, 1e-6));
  EXPECT_NEAR(normed.mean.item<double>(), 3, 1e-6);
  EXPECT_NEAR(normed.variance.item<double>(), 14. / 3, 1e-6);
  const at::Tensor grad = torch::tensor({4.0F, 0.0F, 0.0F, 0.0F}).view({2, 1, 1, 2});
  const auto grads = torch::autograd::grad({normed.y}, {x, weight, bias}, {grad});
  EXPECT_TRUE(torch::allclose(grads[0].flatten(), torch::tensor({2.0F, -1.5F, -1.0F, 0.5F}), 1e-6, 1e-6));
  EXPECT_NEAR(grads[1].item<double>(), -4, 1e-6);
  EXPECT_NEAR(grads[2].item<double>(), 4, 1e-6);
}

TEST(BatchNormMaps, AgreesWithTorchInFloat64) {
  for (const std::vector<int64_t>& shape : shapes()) {
    const std::vector<at::Tensor> exact = exact_results(shape);
    test::at_each_level([&](const std::string& level) {
      const std::vector<at::Tensor> ours = our_results(shape);
      for (size_t r = 0; r < exact.size(); ++r) EXPECT_LT(error(ours[r], exact[r]), 1e-5) << level << " " << r;
    });
  }
}

TEST(BatchNormMaps, HasTheSameBitsForAnyNumberOfThreads) {
  for (const std::vector<int64_t>& shape : shapes()) {
    std::vector<at::Tensor> first;
    for (const int threads : {1, 2, 3, 7}) {
      const test::ThreadCount some(threads);
      const std::vector<at::Tensor> all = our_results(shape);
      if (first.empty()) first = all;
      for (size_t r = 0; r < all.size(); ++r) EXPECT_TRUE(torch::equal(all[r], first[r])) << threads << " " << r;
    }
  }
}

TEST(BatchNormMaps, HasNoSecondDerivative) {
  const Leaves l = make_leaves({2, 3, 2, 2}, torch::kFloat);
  const at::Tensor y = batch_norm_maps(l.x, l.weight, l.bias, kEpsilon).y;
  EXPECT_THROW(torch::autograd::grad({y.square().sum()}, {l.x}, {}, true, /*create_graph=*/true), Error);
}

}  // namespace sparsight::batch_norm_test
