#include "sparsight/moe/moe_layer.h"

#include <cmath>
#include <iostream>
#include <limits>

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/block_mlp.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/experts/mlp_experts.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::moe_layer_test {
namespace {

constexpr int64_t kTokens = 6, kWidth = 4, kExperts = 5;
constexpr at::ScalarType kTypes[] = {torch::kFloat, torch::kDouble};

std::shared_ptr<MoeLayer> small_layer(at::ScalarType type, const std::string& router = "softmax_topk",
                                      const CapacityOptions& capacity = {}) {
  MoeSpec spec =
      read_moe_spec({{"moe", Json::object()}, {"losses", Json::object()}, {"router", {{"name", router}, {"k", 2}}}});
  spec.options.experts = kExperts;
  spec.capacity = capacity;
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 7});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->parameters()) p.mul_(20);  // far from zero, so that every term of a gradient shows
  if (router == "noisy_topk")                            // starts at zero
    for (auto& p : layer->router().named_parameters()) init_normal(p.value(), 0.5, RandomStream(9, p.key()));
  return layer;
}

TokenLayout one_image(int64_t tokens) { return {1, tokens, 0, 0, 0}; }

at::Tensor parameter(MoeLayer& layer, const std::string& name) { return *layer.named_parameters().find(name); }

// Output, losses and all gradients of tokens and parameters, with an upstream gradient of the output.
std::vector<at::Tensor> pass(MoeLayer& layer, const at::Tensor& tokens) {
  const at::Tensor x = tokens.clone().requires_grad_(true);
  layer.zero_grad();
  const MoeOutput out = layer.forward({x, one_image(x.size(0)), ForwardMode::training(), {5, 6}});
  at::Tensor total = (out.tokens * test::random_tensor(out.tokens.sizes(), 4, x.scalar_type())).sum();
  std::vector<at::Tensor> all{out.tokens.detach()};
  for (const NamedLoss& loss : out.routing.losses) {
    total = total + loss.weight * loss.value;
    all.push_back(loss.value.detach());
  }
  total.backward();
  all.push_back(x.grad());
  for (const at::Tensor& p : layer.parameters()) all.push_back(p.grad().clone());
  return all;
}

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

TEST(MoeLayer, S27_EqualsTheDenseDefinitionForwardAndBackward) {
  CapacityOptions limited;
  limited.factor = 0.8;
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const std::string router : {"softmax_topk", "noisy_topk", "sigmoid_bias"})
      for (const CapacityOptions& capacity : {CapacityOptions(), limited}) {
        auto layer = small_layer(type, router, capacity);
        const at::Tensor x = test::random_tensor({200, kWidth}, 3, type).requires_grad_(true);
        const at::Tensor upstream = test::random_tensor({200, kWidth}, 4, type);
        const double tol = type == torch::kDouble ? 1e-12 : 1e-5;
        const auto gradients = [&](const at::Tensor& y) {
          x.mutable_grad() = at::Tensor();
          layer->zero_grad();
          (y * upstream).sum().backward();
          std::vector<at::Tensor> all{x.grad().clone()};
          for (const at::Tensor& p : layer->parameters()) all.push_back(p.grad().clone());
          return all;
        };
        const MoeOutput out = layer->forward({x, one_image(200), ForwardMode::training(), {5, 6}});
        const std::vector<at::Tensor> sparse = gradients(out.tokens);
        const at::Tensor reference =
            dense_reference(*layer, x, layer->forward({x, one_image(200), ForwardMode::training(), {5, 6}}).routing);
        const std::vector<at::Tensor> dense = gradients(reference);
        EXPECT_EQ(out.routing.kept.all().item<bool>(), capacity.factor == 0);
        EXPECT_TRUE(test::near(out.tokens, reference, tol * reference.abs().max().item<double>())) << router;
        for (size_t i = 0; i < dense.size(); ++i)
          EXPECT_TRUE(test::near(sparse[i], dense[i], tol * dense[i].abs().max().item<double>())) << router << i;
      }
}

TEST(MoeLayer, GradientsAgreeWithCentralDifferences) {
  auto layer = small_layer(torch::kDouble);
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3), upstream = test::random_tensor({kTokens, kWidth}, 4);
  const auto loss = [&] {
    const MoeOutput out = layer->forward({x, one_image(kTokens), ForwardMode::training(), {5, 6}});
    at::Tensor total = (out.tokens * upstream).sum();
    for (const NamedLoss& aux : out.routing.losses) total = total + aux.value;
    return total;
  };
  std::vector<at::Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6);
}

TEST(MoeLayer, S6_GradientsOfNoisyTopKAgreeWithCentralDifferences) {
  auto layer = small_layer(torch::kDouble, "noisy_topk");
  const at::Tensor x = test::random_tensor({kTokens, kWidth}, 3), upstream = test::random_tensor({kTokens, kWidth}, 4);
  const auto loss = [&] {
    const MoeOutput out = layer->forward({x, one_image(kTokens), ForwardMode::training(), {5, 6}});
    at::Tensor total = (out.tokens * upstream).sum();
    for (const NamedLoss& aux : out.routing.losses) total = total + aux.value;
    return total;
  };
  std::vector<at::Tensor> inputs = layer->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6);
}

// Room for all N tokens at every expert (C = ceil(2.5 * 2 N / 5) = N, or N where more would fit) changes no bit of the
// layer's output, losses and gradients.
TEST(MoeLayer, S25_WithRoomForAllTheLayerIsTheOneWithoutCapacity) {
  for (const auto type : kTypes)
    for (const std::string router : {"softmax_topk", "noisy_topk", "sigmoid_bias"})
      for (const std::string priority : {"none", "max_gate"})
        for (const double factor : {2.5, 7.0}) {
          CapacityOptions roomy;
          roomy.factor = factor;
          roomy.priority = priority;
          const at::Tensor x = test::random_tensor({101, kWidth}, 3, type);
          const auto limited = small_layer(type, router, roomy), free = small_layer(type, router);
          const Routing routing = limited->forward({x, one_image(101), ForwardMode::training(), {5, 6}}).routing;
          EXPECT_EQ(routing.capacity.item<int64_t>(), 101);
          const std::vector<at::Tensor> got = pass(*limited, x), want = pass(*free, x);
          ASSERT_EQ(got.size(), want.size());
          for (size_t i = 0; i < want.size(); ++i)
            EXPECT_TRUE(torch::equal(got[i], want[i])) << type << router << priority << factor << " " << i;
        }
}

TEST(MoeLayer, S26_FullyDroppedTokensGiveExactlyZeroAndNoExpertGradient) {
  for (const auto type : kTypes) {
    CapacityOptions capacity;
    capacity.factor = 0.01;  // one row per expert
    auto layer = small_layer(type, "softmax_topk", capacity);
    const at::Tensor x = test::random_tensor({100, kWidth}, 3, type).requires_grad_(true);
    const MoeOutput out = layer->forward({x, one_image(100), ForwardMode::training(), {5, 6}});
    const at::Tensor kept_tokens =
        torch::zeros({100}, torch::kBool).index_fill_(0, out.routing.token.masked_select(out.routing.kept), true);
    const at::Tensor dropped = torch::nonzero(kept_tokens.logical_not()).squeeze(1);
    ASSERT_GE(dropped.numel(), 95);
    const at::Tensor lost = out.tokens.index_select(0, dropped);
    EXPECT_EQ(lost.abs().max().item<double>(), 0);
    lost.sum().backward();
    for (const auto& p : layer->experts().named_parameters())
      EXPECT_TRUE(!p.value().grad().defined() || p.value().grad().abs().max().item<double>() == 0) << p.key();
    EXPECT_TRUE(!x.grad().defined() || x.grad().abs().max().item<double>() == 0);
  }
}

// Neither forward nor backward. Of experts with weights: unchosen_experts_test.cpp.
TEST(MoeLayer, S28_OnlyChosenRowsAreComputed) {
  class Counting : public test::Scaling {
   public:
    at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) override {
      computed += rows.size(0);
      const at::Tensor out = test::Scaling::compute(rows, offsets, {});
      out.register_hook([this](const at::Tensor& grad) { computed_backward += grad.size(0); });
      return out;
    }
    int64_t computed = 0, computed_backward = 0;
  };
  for (const auto type : kTypes) {
    const at::Tensor x = test::random_tensor({50, kWidth}, 3, type).requires_grad_(true);
    Routing routing = route_softmax_topk(test::random_tensor({50, 4}, 4, type), {}, 0, 2, false);
    Counting all, limited;
    all.apply_routing(x, routing).sum().backward();
    EXPECT_EQ(all.computed, 100);
    EXPECT_EQ(all.computed_backward, 100);
    apply_capacity(routing, {}, 0.5);
    limited.apply_routing(x, routing).sum().backward();
    EXPECT_EQ(limited.computed, routing.kept.sum().item<int64_t>());
    EXPECT_EQ(limited.computed_backward, limited.computed);
    EXPECT_LT(limited.computed, 100);
  }
}

class MoeLayerIn : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(MoeLayerIn, S29_ExpertsWithoutRowsHaveZeroGradientsAndStayAsTheyAre) {
  auto layer = small_layer(GetParam(), "noisy_topk");
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : layer->router().parameters()) p.zero_();
  }
  // In evaluation all logits tie: everything goes to experts 0 and 1.
  torch::optim::Adam adam(layer->experts().parameters(), torch::optim::AdamOptions(0.1));
  std::vector<at::Tensor> before;
  for (const at::Tensor& p : layer->experts().parameters()) before.push_back(p.detach().clone());
  for (int step = 0; step < 2; ++step) {
    adam.zero_grad();
    const at::Tensor x = test::random_tensor({20, kWidth}, 3, GetParam());
    layer->forward({x, one_image(20), ForwardMode::evaluation(), {5, 6}}).tokens.square().sum().backward();
    for (const at::Tensor& p : layer->experts().parameters()) {
      EXPECT_GT(p.grad().slice(0, 0, 2).abs().max().item<double>(), 0);
      EXPECT_EQ(p.grad().slice(0, 2).abs().max().item<double>(), 0);
    }
    adam.step();
  }
  const auto after = layer->experts().parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(torch::equal(after[i].slice(0, 2), before[i].slice(0, 2)));
    EXPECT_FALSE(torch::equal(after[i].slice(0, 0, 2), before[i].slice(0, 0, 2)));
  }
}

TEST_P(MoeLayerIn, S30_ABatchOfSequencesEqualsItsFlattenedTokens) {
  class Owner : public torch::nn::Module {};
  MoeSpec spec = default_moe_spec({0});
  spec.options.experts = kExperts;
  Owner owner;
  BlockMlp block(owner, {"mlp", kWidth, 7}, &spec);
  initialize(owner, 1);
  owner.to(GetParam());
  const at::Tensor x = test::random_tensor({3, 10, kWidth}, 3, GetParam()).requires_grad_(true);
  ModelOutput out;
  const at::Tensor sequences = block.forward(x, {3, 10, 0, 0, 0}, {{}, ForwardMode::training(), {5, 6}}, out);
  auto& layer = dynamic_cast<MoeLayer&>(*owner.modules(false).front());
  const at::Tensor flat_x = x.detach().view({30, kWidth}).requires_grad_(true);
  const MoeOutput flat = layer.forward({flat_x, one_image(30), ForwardMode::training(), {5, 6}});
  EXPECT_TRUE(torch::equal(sequences.reshape({30, kWidth}), flat.tokens));
  EXPECT_TRUE(torch::equal(out.routings[0].expert, flat.routing.expert));

  const auto gradients = [&](const at::Tensor& y, const std::vector<NamedLoss>& losses, const at::Tensor& leaf) {
    layer.zero_grad();
    at::Tensor total = (y.reshape({30, kWidth}) * test::random_tensor({30, kWidth}, 4, GetParam())).sum();
    for (const NamedLoss& loss : losses) total = total + loss.weight * loss.value;
    total.backward();
    std::vector<at::Tensor> all{leaf.grad().reshape({30, kWidth})};
    for (const at::Tensor& p : layer.parameters()) all.push_back(p.grad().clone());
    return all;
  };
  const auto of_sequences = gradients(sequences, out.losses, x),
             of_flat = gradients(flat.tokens, flat.routing.losses, flat_x);
  EXPECT_EQ(flat.routing.losses.size(), 2u);
  for (size_t i = 0; i < of_flat.size(); ++i) {
    EXPECT_TRUE(torch::equal(of_sequences[i], of_flat[i])) << i;
    EXPECT_GT(of_flat[i].abs().max().item<double>(), 0) << i;
  }
}

TEST(MoeLayer, PaddingGivesZeroAndChangesNothingElse) {
  auto layer = small_layer(torch::kDouble, "noisy_topk");
  const at::Tensor x = test::random_tensor({30, kWidth}, 3);
  const at::Tensor valid = torch::arange(30) < 20;
  at::Tensor padded = x.clone();
  padded.slice(0, 20).fill_(std::numeric_limits<double>::quiet_NaN());
  RoutingContext pool;
  pool.valid = valid;
  const MoeOutput with = layer->forward({padded, one_image(30), ForwardMode::training(), {5, 6}, pool}),
                  without = layer->forward({x.slice(0, 0, 20), one_image(20), ForwardMode::training(), {5, 6}});
  EXPECT_TRUE(test::near(with.tokens.slice(0, 0, 20), without.tokens, 1e-12));
  EXPECT_EQ(with.tokens.slice(0, 20).abs().max().item<double>(), 0);
  ASSERT_EQ(with.routing.losses.size(), without.routing.losses.size());
  at::Tensor total = with.tokens.sum();
  for (size_t i = 0; i < with.routing.losses.size(); ++i) {
    EXPECT_NEAR(with.routing.losses[i].value.item<double>(), without.routing.losses[i].value.item<double>(), 1e-12);
    total = total + with.routing.losses[i].value;
  }
  total.backward();
  for (const auto& p : layer->named_parameters())
    EXPECT_TRUE(torch::isfinite(p.value().grad()).all().item<bool>()) << p.key();
}

TEST_P(MoeLayerIn, S33_SplittingABatchChangesNoImagesNoise) {
  auto layer = small_layer(GetParam(), "noisy_topk");
  const at::Tensor x = test::random_tensor({40, kWidth}, 3, GetParam());
  const MoeOutput whole = layer->forward({x, {40, 1, 0, 0, 0}, ForwardMode::training(), {5, 6}});
  RoutingContext context;
  context.image = torch::arange(13, 40, torch::kLong);
  const MoeOutput part = layer->forward({x.slice(0, 13), {27, 1, 0, 0, 0}, ForwardMode::training(), {5, 6}, context});
  EXPECT_TRUE(torch::equal(part.routing.expert, whole.routing.expert.slice(0, 26)));
  const double tol = GetParam() == torch::kDouble ? 1e-14 : 1e-6;
  EXPECT_TRUE(torch::allclose(part.tokens, whole.tokens.slice(0, 13), tol, tol));
}

// Wg and Wn, experts, the bias and the thresholds; the registry's test is for every router. Files have no gradient.
TEST_P(MoeLayerIn, S46_SurvivesSavingAndLoading) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path("layer.safetensors");
  for (const std::string router : {"noisy_topk", "sigmoid_bias", "balanced_batchwise"}) {
    auto layer = small_layer(GetParam(), router), other = small_layer(GetParam(), router);
    const at::Tensor x = test::random_tensor({60, kWidth}, 3, GetParam());
    post_step_update(*layer, {layer->forward({x, one_image(60), ForwardMode::training(), {5, 6}})
                                  .routing});  // moves the bias or the thresholds
    {
      const torch::NoGradGuard no_grad;
      for (at::Tensor& p : other->parameters()) p.add_(1);
    }
    write_safetensors(file, {named_weights(*layer), {}});
    LoadOptions strict;
    strict.strict = true;
    load_weights(*other, read_safetensors(file).tensors, strict);
    EXPECT_TRUE(torch::equal(layer->forward({x, one_image(60)}).tokens, other->forward({x, one_image(60)}).tokens));
    for (const auto& b : layer->named_buffers()) {
      EXPECT_TRUE(torch::equal(b.value(), other->named_buffers()[b.key()])) << b.key();
      EXPECT_NE(b.value().abs().max().item<double>(), 0) << b.key();
    }
  }
}

TEST(MoeLayer, DroppedAssignmentsContributeNothing) {
  MlpExperts experts({}, {kExperts, kWidth, 7});
  initialize(experts, 2);
  experts.to(torch::kDouble);
  const at::Tensor x = test::random_tensor({3, kWidth}, 3);
  Routing routing = route_softmax_topk(test::random_tensor({3, kExperts}, 4), {}, 0, 2, false);
  const at::Tensor before = experts.apply_routing(x, routing);
  // Drop both assignments of token 1 (numbers 2 and 3).
  const at::Tensor kept = (routing.order != 2).logical_and(routing.order != 3);
  const at::Tensor expert_of_row = routing.expert.index_select(0, routing.order).masked_select(kept);
  routing.order = routing.order.masked_select(kept);
  routing.offsets =
      torch::cat({torch::zeros({1}, torch::kLong), torch::bincount(expert_of_row, {}, kExperts).cumsum(0)});
  const at::Tensor after = experts.apply_routing(x, routing);
  EXPECT_TRUE(torch::equal(after[1], torch::zeros({kWidth}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(after[0], before[0]));
  EXPECT_TRUE(torch::equal(after[2], before[2]));
}

TEST(MoeLayer, AnEmptyBatchGivesAnEmptyResult) {
  auto layer = small_layer(torch::kFloat);
  const MoeOutput out = layer->forward({torch::empty({0, kWidth}), one_image(0), ForwardMode::training(), {1, 2}});
  EXPECT_EQ(out.tokens.sizes(), (std::vector<int64_t>{0, kWidth}));
  for (const NamedLoss& loss : out.routing.losses) EXPECT_EQ(loss.value.item<double>(), 0);
}

TEST(MoeLayer, TokensThatDoNotFitAreRefusedInWords) {
  auto layer = small_layer(torch::kFloat);
  const auto message = [&](at::IntArrayRef sizes, const TokenLayout& layout) {
    return testing::error_text([&] { layer->forward({torch::zeros(sizes), layout, ForwardMode::training(), {5, 6}}); });
  };
  EXPECT_EQ(message({6, 3}, one_image(6)), "the MoE layer moe takes tokens [N, 4], got [6, 3]");
  EXPECT_EQ(message({2, 3, 4}, one_image(6)), "the MoE layer moe takes tokens [N, 4], got [2, 3, 4]");
  EXPECT_EQ(message({6, 4}, {2, 4, 0, 0, 0}), "the MoE layer moe got 6 tokens for a layout of 2 images of 4 tokens");
}

TEST_P(MoeLayerIn, S33_SameSeedAndStepGiveTheSameBits) {
  auto layer = small_layer(GetParam());
  const at::Tensor x = test::random_tensor({500, kWidth}, 3, GetParam());
  const auto run = [&](uint64_t step) {
    layer->zero_grad();
    layer->forward({x, one_image(500), ForwardMode::training(), {5, step}}).tokens.square().sum().backward();
    return parameter(*layer, "experts.w1").grad().clone();
  };
  const at::Tensor first = run(1), again = run(1), other = run(2);
  EXPECT_TRUE(torch::equal(first, again));
  EXPECT_FALSE(torch::equal(first, other));
}

INSTANTIATE_TEST_SUITE_P(Types, MoeLayerIn, ::testing::ValuesIn(kTypes));

TEST(MoeLayer, LossesAreComputedInTrainingOnly) {
  auto layer = small_layer(torch::kFloat);
  const at::Tensor x = test::random_tensor({10, kWidth}, 3, torch::kFloat);
  EXPECT_EQ(layer->forward({x, one_image(10), ForwardMode::training(), {5, 6}}).routing.losses.size(), 2u);
  EXPECT_TRUE(layer->forward({x, one_image(10), ForwardMode::evaluation(), {5, 6}}).routing.losses.empty());
}

}  // namespace sparsight::moe_layer_test
