// Shared experts and the output's sigmoid, in the layer.
#include <gtest/gtest.h>

#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::shared_experts_test {
namespace {

constexpr int64_t kTokens = 6, kWidth = 4, kExperts = 5;

std::shared_ptr<MoeLayer> small_layer(int64_t shared, int64_t shared_hidden = 0, bool sigmoid = false) {
  MoeSpec spec = default_moe_spec();
  spec.options.experts = kExperts;
  spec.options.shared = shared;
  spec.options.shared_hidden = shared_hidden;
  spec.options.output_sigmoid = sigmoid;
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 7});
  initialize(*layer, 1);
  layer->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->parameters()) p.mul_(20).add_(0.1);
  return layer;
}

at::Tensor run(MoeLayer& layer, const at::Tensor& x, const RoutingContext& pool = {}) {
  return layer.forward({x, {1, x.size(0), 0, 0, 0}, ForwardMode::training(), {5, 6}, pool}).tokens;
}

at::Tensor parameter(MoeLayer& layer, const std::string& name) { return *layer.named_parameters().find(name); }

// Expert s of the shared ones on every token.
at::Tensor shared_mlp(MoeLayer& layer, const at::Tensor& x, int64_t s) {
  const at::Tensor hidden = at::gelu(x.matmul(parameter(layer, "shared.w1")[s]) + parameter(layer, "shared.b1")[s]);
  return hidden.matmul(parameter(layer, "shared.w2")[s]) + parameter(layer, "shared.b2")[s];
}

}  // namespace

TEST(SharedExperts, AddTheirOutputsUngated) {
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3);
  const at::Tensor routed = run(*small_layer(0), x);  // the same routed experts: streams are named
  for (const int64_t count : {1, 3}) {
    const auto layer = small_layer(count, 3);
    EXPECT_EQ(parameter(*layer, "shared.w1").sizes(), (std::vector<int64_t>{count, kWidth, 3}));
    at::Tensor expected = routed;
    for (int64_t s = 0; s < count; ++s) expected = expected + shared_mlp(*layer, x, s);
    EXPECT_TRUE(torch::allclose(run(*layer, x), expected, 1e-12, 1e-12)) << count;
  }
}

TEST(SharedExperts, HaveTheHiddenWidthOfAnExpertWhereNoneIsGiven) {
  EXPECT_EQ(parameter(*small_layer(2), "shared.w1").sizes(),
            parameter(*small_layer(2), "experts.w1")[0].unsqueeze(0).expand({2, -1, -1}).sizes());
}

TEST(SharedExperts, GradientsAgreeWithCentralDifferences) {
  const auto layer = small_layer(2, 3, /*sigmoid=*/true);
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3), upstream = test::random_tensor({kTokens, kWidth}, 4);
  std::vector<at::Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (run(*layer, x) * upstream).sum(); }, inputs, 1e-6), 1e-6);
}

TEST(OutputSigmoid, IsTheSigmoidOfTheLayerAndIsOffByDefault) {
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3);
  EXPECT_FALSE(MoeOptions().output_sigmoid);
  EXPECT_TRUE(torch::equal(run(*small_layer(1, 0, true), x), at::sigmoid(run(*small_layer(1), x))));
}

TEST(OutputSigmoid, PaddingStaysZero) {
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3);
  RoutingContext pool;
  pool.valid = torch::tensor({true, true, false, true, false, true});
  const at::Tensor out = run(*small_layer(1, 0, true), x, pool);
  EXPECT_EQ(out[2].abs().max().item<double>(), 0);
  EXPECT_EQ(out[4].abs().max().item<double>(), 0);
  EXPECT_GT(out[3].abs().max().item<double>(), 0);
}

}  // namespace sparsight::shared_experts_test
