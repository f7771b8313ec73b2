#include "sparsight/ops/norm_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/layer_norm.h"
#include "tests/support/gradcheck.h"
#include "tests/support/live_bytes.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::norm_linear_test {
namespace {

// x [R,D], norm weight and bias [D], w1 [F,D], b1 [F], w2 [D,F], b2 [D]
std::vector<at::Tensor> random_leaves(int64_t rows, int64_t width, int64_t hidden, at::ScalarType type) {
  std::vector<at::Tensor> leaves;
  const std::vector<std::vector<int64_t>> sizes{{rows, width}, {width},         {width}, {hidden, width},
                                                {hidden},      {width, hidden}, {width}};
  for (size_t i = 0; i < sizes.size(); ++i)
    leaves.push_back(test::random_tensor(sizes[i], i + 1, type).requires_grad_(true));
  return leaves;
}

using Layer = at::Tensor (*)(const std::vector<at::Tensor>&);

at::Tensor linear_of_norm(const std::vector<at::Tensor>& v) { return norm_linear(v[0], {v[1], v[2]}, v[3], v[4]); }
at::Tensor linear_without_bias(const std::vector<at::Tensor>& v) { return norm_linear(v[0], {v[1], v[2]}, v[3], {}); }
at::Tensor mlp_of_norm(const std::vector<at::Tensor>& v) {
  return norm_mlp(v[0], {v[1], v[2]}, {v[3], v[4], v[5], v[6]});
}

at::Tensor ends(const at::Tensor& rows) { return torch::tensor({int64_t{0}, rows.size(0)}); }
at::Tensor separate_linear(const std::vector<at::Tensor>& v) {
  const at::Tensor rows = layer_norm(v[0], v[1], v[2], 1e-6);
  return grouped_linear(rows, ends(rows), v[3].t().unsqueeze(0), v[4].unsqueeze(0));
}
at::Tensor separate_without_bias(const std::vector<at::Tensor>& v) {
  const at::Tensor rows = layer_norm(v[0], v[1], v[2], 1e-6);
  return grouped_linear(rows, ends(rows), v[3].t().unsqueeze(0));
}
at::Tensor separate_mlp(const std::vector<at::Tensor>& v) {
  const at::Tensor rows = layer_norm(v[0], v[1], v[2], 1e-6);
  return expert_mlp(rows, rows_in_place(rows, ends(rows)),
                    {v[3].t().unsqueeze(0), v[4].unsqueeze(0), v[5].t().unsqueeze(0), v[6].unsqueeze(0)}, {});
}

// The result and every gradient that exists.
std::vector<at::Tensor> with_gradients(Layer layer, std::vector<at::Tensor> leaves) {
  for (at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
  const at::Tensor out = layer(leaves);
  out.backward(test::random_tensor(out.sizes(), 9, out.scalar_type()));
  std::vector<at::Tensor> all{out.detach()};
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad().defined() ? leaf.grad().clone() : at::Tensor());
  return all;
}

int64_t kept_bytes(Layer layer, const std::vector<at::Tensor>& leaves) {
  const at::Tensor warm = layer(leaves);
  const test::LiveBytes live;
  const at::Tensor out = layer(leaves);
  return live.count();
}

}  // namespace

TEST(NormLinear, HasTheBitsOfLayerNormFollowedByTheLayer) {
  for (const auto& [fused, separate] : {std::pair<Layer, Layer>{linear_of_norm, separate_linear},
                                        {linear_without_bias, separate_without_bias},
                                        {mlp_of_norm, separate_mlp}})
    for (const int64_t rows : {1, 7, 200}) {
      const auto leaves = random_leaves(rows, 24, 40, torch::kFloat);
      const auto got = with_gradients(fused, leaves), want = with_gradients(separate, leaves);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].defined(), want[i].defined()) << i;
        if (got[i].defined()) {
          EXPECT_TRUE(torch::equal(got[i], want[i])) << rows << " rows, " << i;
        }
      }
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(fused(leaves), got[0]));
    }
}

TEST(NormLinear, GradientsFollowDifferences) {
  const auto leaves = random_leaves(3, 5, 4, torch::kDouble);
  for (const Layer layer : {linear_of_norm, mlp_of_norm}) {
    const at::Tensor direction = test::random_tensor(layer(leaves).sizes(), 9);
    EXPECT_LT(test::gradient_error([&] { return (layer(leaves) * direction).sum(); }, leaves), 1e-7);
  }
}

TEST(NormLinear, FrozenWeightsGetNoGradient) {
  for (const Layer layer : {linear_of_norm, mlp_of_norm}) {
    auto leaves = random_leaves(6, 8, 12, torch::kFloat);
    const at::Tensor all = with_gradients(layer, leaves)[1];
    for (size_t i = 1; i < leaves.size(); ++i) leaves[i] = leaves[i].detach();
    const auto got = with_gradients(layer, leaves);
    EXPECT_TRUE(torch::equal(got[1], all));
    for (size_t i = 2; i < got.size(); ++i) EXPECT_FALSE(got[i].defined()) << i;
  }
}

// 200 x 24 numbers of the normalised rows, which the separate layers keep.
// With frozen weights the forward pass keeps the slope of the activation instead of its input.
TEST(NormLinear, GradientsOfInputsAreThoseOfAnMlpThatTrains) {
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu}) {
    const auto gradient = [&](bool trains) {
      std::vector<at::Tensor> v = random_leaves(70, 24, 400, torch::kFloat);
      for (size_t i = 1; i < v.size(); ++i) v[i].set_requires_grad(trains);
      mlp_residual(v[0], {v[1], v[2]}, {v[3], v[4], v[5], v[6], activation}, {}).square().sum().backward();
      return v[0].grad();
    };
    const at::Tensor want = gradient(true);
    EXPECT_TRUE(test::near(gradient(false), want, 1e-5 * want.abs().max().item<double>()));
  }
}

TEST(NormLinear, KeepsNoNormalisedRows) {
  const auto leaves = random_leaves(200, 24, 40, torch::kFloat);
  constexpr int64_t kRows = 200 * 24 * 4;
  EXPECT_GE(kept_bytes(separate_linear, leaves) - kept_bytes(linear_of_norm, leaves), kRows);
  EXPECT_GE(kept_bytes(separate_mlp, leaves) - kept_bytes(mlp_of_norm, leaves), kRows);
}

}  // namespace sparsight::norm_linear_test
