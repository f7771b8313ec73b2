// First and second derivatives of attention pooling.
#include "sparsight/nn/attention_pool.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/ops/twice_differentiable.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attention_pool_test {
namespace {

AttentionPool random_pool() {
  AttentionPool pool(AttentionPoolOptions{.width = 4, .heads = 2, .mlp_hidden = 6});
  initialize(*pool, 1);
  pool->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : pool->parameters()) parameter.mul_(20).add_(0.1);
  return pool;
}

}  // namespace

TEST(AttentionPool, GradientsAgreeWithCentralDifferences) {
  AttentionPool pool = random_pool();
  const at::Tensor x = test::random_tensor({2, 3, 4}, 2), upstream = test::random_tensor({2, 4}, 3);
  std::vector<at::Tensor> inputs = pool->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (pool->forward(x) * upstream).sum(); }, inputs), 1e-6);
}

TEST(AttentionPool, SecondDerivativesAgreeWithCentralDifferences) {
  AttentionPool pool = random_pool();
  const at::Tensor x = test::random_tensor({2, 3, 4}, 2), upstream = test::random_tensor({2, 4}, 3);
  const auto gradient_norm = [&] {
    const at::AutoGradMode with_grad(true);
    const TwiceDifferentiable twice;
    const at::Tensor loss = (pool->forward(x) * upstream).sum();
    return torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0].square().sum();
  };
  EXPECT_LT(test::gradient_error(gradient_norm, {x}), 1e-5);
}

}  // namespace sparsight::attention_pool_test
