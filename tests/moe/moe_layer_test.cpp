#include "sparsight/moe/moe_layer.h"

#include <gtest/gtest.h>

#include "sparsight/moe/dispatch.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/nn/init.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight {
namespace {

constexpr int64_t kTokens = 6, kWidth = 4, kExperts = 5;

std::shared_ptr<MoeLayer> small_layer(at::ScalarType type) {
  MoeSpec spec = default_moe_spec();
  spec.options.experts = kExperts;
  auto layer = std::make_shared<MoeLayer>(spec, MoePlace{"moe", kWidth, 7});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->parameters()) p.mul_(20);  // far from zero, so that every term of a gradient shows
  return layer;
}

TokenLayout one_image(int64_t tokens) { return {1, tokens, 0, 0, 0}; }

at::Tensor parameter(MoeLayer& layer, const std::string& name) { return *layer.named_parameters().find(name); }

// Every expert on every token, times a dense matrix of gates: the definition of the layer.
at::Tensor dense_reference(MoeLayer& layer, const at::Tensor& x, const Routing& routing) {
  const at::Tensor gates = torch::zeros({x.size(0), kExperts}, x.options())
                               .index_put({routing.token, routing.expert}, routing.gate * routing.kept);
  const at::Tensor hidden = at::gelu(torch::einsum("nd,edf->enf", {x, parameter(layer, "experts.w1")}) +
                                     parameter(layer, "experts.b1").unsqueeze(1));
  const at::Tensor outputs = torch::einsum("enf,efd->end", {hidden, parameter(layer, "experts.w2")}) +
                             parameter(layer, "experts.b2").unsqueeze(1);
  return torch::einsum("ne,end->nd", {gates, outputs});
}

}  // namespace

TEST(MoeLayer, EqualsTheDenseDefinitionForwardAndBackward) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto layer = small_layer(type);
    const at::Tensor x = test::random_tensor({200, kWidth}, 3, type).requires_grad_(true);
    const at::Tensor pull = test::random_tensor({200, kWidth}, 4, type);
    const double tol = type == torch::kDouble ? 1e-12 : 1e-4;

    const MoeOutput out = layer->forward(x, one_image(200), {5, 6});
    (out.tokens * pull).sum().backward();
    std::vector<at::Tensor> sparse{x.grad().clone()};
    for (const at::Tensor& p : layer->parameters()) sparse.push_back(p.grad().clone());

    x.mutable_grad() = at::Tensor();
    layer->zero_grad();
    const Routing routing = layer->forward(x, one_image(200), {5, 6}).routing;
    const at::Tensor reference = dense_reference(*layer, x, routing);
    EXPECT_TRUE(torch::allclose(out.tokens, reference, tol, tol));
    (reference * pull).sum().backward();
    std::vector<at::Tensor> dense{x.grad()};
    for (const at::Tensor& p : layer->parameters()) dense.push_back(p.grad());
    for (size_t i = 0; i < dense.size(); ++i)
      EXPECT_TRUE(torch::allclose(sparse[i], dense[i], tol, tol * dense[i].abs().max().item<double>())) << i;
  }
}

TEST(MoeLayer, GradientsAgreeWithCentralDifferences) {
  auto layer = small_layer(torch::kDouble);
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3), pull = test::random_tensor({kTokens, kWidth}, 4);
  const auto loss = [&] {
    const MoeOutput out = layer->forward(x, one_image(kTokens), {5, 6});
    at::Tensor total = (out.tokens * pull).sum();
    for (const NamedLoss& aux : out.losses) total = total + aux.value;
    return total;
  };
  std::vector<at::Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6);
}

// Toy experts E_i(x) = (i+1) x with the gates of noisy top-k on the shared example: the published worked example of the
// layer's forward and backward pass (loss = sum_j <y_j, (1,2,-1)>).
TEST(MoeLayer, ReproducesTheWorkedExample) {
  class Scaling : public Experts {
   public:
    at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets) override {
      const at::Tensor expert = torch::repeat_interleave(torch::arange(4, torch::kLong), offsets.diff());
      return rows * (expert + 1).to(rows.scalar_type()).unsqueeze(1);
    }
  };
  const at::Tensor x =
      torch::tensor({{1.0, -0.5, 0.25}, {0.5, 1.5, -1.0}, {-1.25, 0.75, 0.5}}, torch::kDouble).requires_grad_(true);
  const at::Tensor h = torch::tensor({{1.315675, -1.316127, 0.003417, 0.760752},
                                      {-1.653845, 0.803353, 2.283533, -0.891173},
                                      {0.240689, 0.331173, 0.121718, -0.710153}},
                                     torch::kDouble)
                           .requires_grad_(true);
  const Routing routing = route_softmax_topk(h, {}, 0, 2, /*renormalize=*/true);
  Scaling experts;
  const at::Tensor y = run_experts(x, routing, experts);
  const at::Tensor loss = (y * torch::tensor({1., 2., -1.}, torch::kDouble)).sum();
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), 11.761506, 5e-6);  // h is rounded to six decimals
  EXPECT_TRUE(torch::allclose(
      y,
      torch::tensor({{2.094169, -1.047084, 0.523542}, {1.407300, 4.221900, -2.814600}, {-1.903257, 1.141954, 0.761303}},
                    torch::kDouble),
      0, 5e-6))
      << y;
  EXPECT_TRUE(torch::allclose(h.grad(),
                              torch::tensor({{0.173775, 0.000000, 0.000000, -0.173775},
                                             {0.000000, -0.679621, 0.679621, 0.000000},
                                             {0.062372, -0.062372, 0.000000, 0.000000}},
                                            torch::kDouble),
                              0, 5e-6))
      << h.grad();
}

TEST(MoeLayer, DroppedAssignmentsContributeNothing) {
  MlpExperts experts({}, {kExperts, kWidth, 7});
  initialize(experts, 2);
  experts.to(torch::kDouble);
  const at::Tensor x = test::random_tensor({3, kWidth}, 3);
  Routing routing = route_softmax_topk(test::random_tensor({3, kExperts}, 4), {}, 0, 2, false);
  const at::Tensor before = run_experts(x, routing, experts);
  // Drop both assignments of token 1 (numbers 2 and 3).
  const at::Tensor kept = (routing.order != 2).logical_and(routing.order != 3);
  const at::Tensor expert_of_row = routing.expert.index_select(0, routing.order).masked_select(kept);
  routing.order = routing.order.masked_select(kept);
  routing.offsets =
      torch::cat({torch::zeros({1}, torch::kLong), torch::bincount(expert_of_row, {}, kExperts).cumsum(0)});
  const at::Tensor after = run_experts(x, routing, experts);
  EXPECT_TRUE(torch::equal(after[1], torch::zeros({kWidth}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(after[0], before[0]));
  EXPECT_TRUE(torch::equal(after[2], before[2]));
}

TEST(MoeLayer, AnEmptyPoolGivesAnEmptyResult) {
  auto layer = small_layer(torch::kFloat);
  const MoeOutput out = layer->forward(torch::empty({0, kWidth}), one_image(0), {1, 2});
  EXPECT_EQ(out.tokens.sizes(), (std::vector<int64_t>{0, kWidth}));
  for (const NamedLoss& loss : out.losses) EXPECT_EQ(loss.value.item<double>(), 0);
}

TEST(MoeLayer, SameSeedAndStepGiveTheSameBits) {
  auto layer = small_layer(torch::kFloat);
  const at::Tensor x = test::random_tensor({500, kWidth}, 3, torch::kFloat);
  const auto run = [&](uint64_t step) {
    layer->zero_grad();
    layer->forward(x, one_image(500), {5, step}).tokens.square().sum().backward();
    return parameter(*layer, "experts.w1").grad().clone();
  };
  const at::Tensor first = run(1), again = run(1), other = run(2);
  EXPECT_TRUE(torch::equal(first, again));
  EXPECT_FALSE(torch::equal(first, other));
}

TEST(MoeLayer, LossesAreComputedInTrainingOnly) {
  auto layer = small_layer(torch::kFloat);
  const at::Tensor x = test::random_tensor({10, kWidth}, 3, torch::kFloat);
  EXPECT_EQ(layer->forward(x, one_image(10), {5, 6}).losses.size(), 2u);
  layer->eval();
  EXPECT_TRUE(layer->forward(x, one_image(10), {5, 6}).losses.empty());
}

}  // namespace sparsight
