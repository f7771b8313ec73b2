#include "sparsight/nn/attention.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::attention_test {
namespace {

Attention random_attention(int64_t width, int64_t heads) {
  Attention attention(AttentionOptions{width, heads});
  initialize(*attention, 1);
  attention->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : attention->parameters()) p.mul_(30).add_(0.1);
  return attention;
}

// Each output by its definition, one image, head and token at a time.
at::Tensor by_definition(Attention& attention, const at::Tensor& x, int64_t heads) {
  const auto parameters = attention->named_parameters();
  const at::Tensor qkv = at::linear(x, parameters["qkv.weight"], parameters["qkv.bias"]);
  const int64_t width = x.size(2), d = width / heads;
  at::Tensor mixed = torch::zeros_like(x);
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const at::Tensor q = qkv[b].slice(1, h * d, (h + 1) * d), k = qkv[b].slice(1, width + h * d, width + (h + 1) * d);
      const at::Tensor v = qkv[b].slice(1, 2 * width + h * d, 2 * width + (h + 1) * d);
      for (int64_t s = 0; s < x.size(1); ++s) {
        const at::Tensor score = (k.matmul(q[s]) / std::sqrt(static_cast<double>(d))).exp();
        mixed[b][s].slice(0, h * d, (h + 1) * d).copy_((score / score.sum()).matmul(v));
      }
    }
  return at::linear(mixed, parameters["proj.weight"], parameters["proj.bias"]);
}

}  // namespace

TEST(Attention, EqualsItsDefinitionOnShortAndLongSequences) {
  const torch::NoGradGuard no_grad;
  Attention attention = random_attention(12, 3);
  for (const int64_t tokens : {1, 17, 70}) {
    const at::Tensor x = test::random_tensor({2, tokens, 12}, 2);
    EXPECT_TRUE(torch::allclose(attention->forward(x), by_definition(attention, x, 3), 1e-10, 1e-10)) << tokens;
  }
}

TEST(Attention, GradientsAgreeWithCentralDifferences) {
  Attention attention = random_attention(4, 2);
  const at::Tensor x = test::random_tensor({2, 3, 4}, 2), upstream = test::random_tensor({2, 3, 4}, 3);
  std::vector<at::Tensor> inputs = attention->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (attention->forward(x) * upstream).sum(); }, inputs), 1e-7);
}

// Each head has four columns: norms of two would give 1 and -1 whatever the input.
TEST(Attention, GradientsThroughNormsOfQueriesAndKeysAgreeWithCentralDifferences) {
  Attention attention(AttentionOptions{.width = 8, .heads = 2, .qk_norm = true});
  attention->to(torch::kDouble);
  std::vector<at::Tensor> inputs = attention->parameters();
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].copy_(test::random_tensor(inputs[i].sizes(), 10 + i) / 2);
  }
  const at::Tensor x = test::random_tensor({2, 3, 8}, 2), upstream = test::random_tensor({2, 3, 8}, 3);
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (attention->forward(x) * upstream).sum(); }, inputs), 1e-6);
}

}  // namespace sparsight::attention_test
