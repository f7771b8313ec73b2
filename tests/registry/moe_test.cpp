// Every registered router, kind of expert and routing loss.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::moe_test {
namespace {

constexpr int64_t kImages = 4, kPerImage = 10, kTokens = kImages * kPerImage, kWidth = 8, kExperts = 4;

std::shared_ptr<Router> make_router(const std::string& name, uint64_t seed) {
  auto router = routers().make(name, Json::object(), "router", RouterShape{kWidth, kExperts});
  initialize(*router, seed);
  return router;
}

std::shared_ptr<Experts> make_experts(const std::string& name, uint64_t seed) {
  auto experts = expert_kinds().make(name, Json::object(), "moe", ExpertShape{kExperts, kWidth, 12});
  initialize(*experts, seed);
  return experts;
}

RouterInput make_input(const at::Tensor& tokens) {
  return {tokens, {kImages, kPerImage, 1, 3, 3}, "moe", ForwardMode::training(), {1, 2}};
}

at::Tensor tokens() { return test::random_tensor({kTokens, kWidth}, 3, torch::kFloat); }

// The routers that choose experts, or those that mix tokens.
std::vector<std::string> router_names(bool soft) {
  std::vector<std::string> names;
  for (const std::string& name : routers().names())
    if ((make_router(name, 1)->mixes_tokens()) == soft) names.push_back(name);
  return names;
}

std::shared_ptr<MoeLayer> make_layer(const std::string& router, uint64_t seed) {
  MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}, {"hidden", 12}}},
                                {"capacity", {{"factor", 0.75}, {"group", 2}, {"priority", "max_gate"}}},
                                {"losses", Json::object()},
                                {"router", {{"name", router}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 12});
  initialize(*layer, seed);
  return layer;
}

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const RoutingLoss& loss : routing_losses()) names.push_back(loss.name);
  return names;
}

void copy_parameters(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  for (const auto& p : from.named_parameters()) to.named_parameters()[p.key()].copy_(p.value());
  for (const auto& b : from.named_buffers()) to.named_buffers()[b.key()].copy_(b.value());
}

const auto test_name = [](const auto& info) { return info.param; };

}  // namespace

class EveryRouter : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryRouter, MakesAConsistentRouting) {
  auto router = make_router(GetParam(), 1);
  const Routing r = router->route(make_input(tokens()));
  EXPECT_EQ(r.tokens, kTokens);
  EXPECT_EQ(r.experts, kExperts);
  const int64_t assignments = r.token.size(0);
  for (const at::Tensor& t : {r.expert, r.rank, r.gate, r.kept})
    EXPECT_EQ(t.sizes(), (std::vector<int64_t>{assignments}));
  EXPECT_TRUE(((r.token >= 0) & (r.token < kTokens)).all().item<bool>());
  EXPECT_TRUE(((r.expert >= 0) & (r.expert < kExperts)).all().item<bool>());
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::bincount(r.expert, {}, kExperts)));
  // No (token, expert) pair twice.
  EXPECT_EQ(std::get<0>(at::_unique(r.token * kExperts + r.expert)).size(0), assignments);
  // `order` holds each kept assignment once, grouped as `offsets` says.
  EXPECT_TRUE(torch::equal(std::get<0>(r.order.sort()), torch::nonzero(r.kept).squeeze(1)));
  const at::Tensor by_group = torch::repeat_interleave(torch::arange(kExperts, torch::kLong), r.offsets.diff());
  EXPECT_TRUE(torch::equal(r.expert.index_select(0, r.order), by_group));
  if (r.per_token > 0) {
    EXPECT_LE(assignments, kTokens * r.per_token);
  }
}

TEST_P(EveryRouter, TrainsThroughItsGates) {
  auto router = make_router(GetParam(), 1);
  const at::Tensor x = tokens().requires_grad_(true);
  const at::Tensor gate = router->route(make_input(x)).gate;
  if (!gate.requires_grad()) {  // routers without anything to learn
    EXPECT_TRUE(router->parameters().empty());
    return;
  }
  (gate * test::random_tensor(gate.sizes(), 5, torch::kFloat)).sum().backward();
  for (const auto& p : router->named_parameters()) {
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    EXPECT_TRUE(torch::isfinite(p.value().grad()).all().item<bool>()) << p.key();
  }
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
}

// Forward and backward with the router's default losses, small buffers and a post-step update.
TEST_P(EveryRouter, TrainsInALayerAndGivesTheSameOutputAfterASave) {
  auto layer = make_layer(GetParam(), 1), other = make_layer(GetParam(), 2);
  const TokenLayout layout{kImages, kPerImage, 1, 3, 3};
  const at::Tensor x = tokens().requires_grad_(true);
  RoutingContext guided;  // input of super-class guidance
  guided.target = torch::full({kImages, kExperts}, 1.0 / kExperts);
  const MoeOutput out = layer->forward({x, layout, ForwardMode::training(), {1, 2}, guided});
  EXPECT_EQ(out.routing.losses.size(), layer->router().default_losses().size() + layer->router().own_losses().size());
  at::Tensor total = out.tokens.square().sum();
  for (const NamedLoss& loss : out.routing.losses) total = total + loss.weight * loss.value;
  total.backward();
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
  EXPECT_GT(out.tokens.abs().max().item<double>(), 0);
  post_step_update(*layer, {detached(out.routing)});

  copy_parameters(*layer, *other);
  EXPECT_TRUE(torch::equal(layer->forward({x, layout}).tokens, other->forward({x, layout}).tokens));
}

TEST_P(EveryRouter, NamesLossesThatExist) {
  for (const LossWeight& loss : make_router(GetParam(), 1)->default_losses()) {
    const auto names = loss_names();
    EXPECT_NE(std::find(names.begin(), names.end(), loss.name), names.end()) << loss.name;
    EXPECT_GT(loss.weight, 0);
  }
}

TEST_P(EveryRouter, GivesPaddingNoExpert) {
  auto router = make_router(GetParam(), 1);
  at::Tensor x = tokens();
  const at::Tensor valid = torch::arange(kTokens, torch::kLong).remainder(kPerImage) < 7;
  x.masked_fill_(valid.logical_not().unsqueeze(1), std::numeric_limits<float>::quiet_NaN());
  RouterInput input = make_input(x);
  input.context.valid = valid;
  const at::Tensor padding = torch::nonzero(valid.logical_not()).squeeze(1);
  for (const bool training : {true, false}) {
    input.mode = training ? ForwardMode::training() : ForwardMode::evaluation();
    const Routing r = router->route(input);
    EXPECT_TRUE(valid.index_select(0, r.token).all().item<bool>());
    EXPECT_TRUE(torch::isfinite(r.gate).all().item<bool>());
    EXPECT_EQ(r.chosen_count.sum().item<int64_t>(), r.expert.size(0));
    for (const Routing* level = &r; level; level = level->groups.get())
      for (const at::Tensor& rows : {level->clean_logits, level->noisy_logits, level->noise_scale, level->scores})
        if (rows.defined() && rows.dim() == 2) {
          EXPECT_TRUE((rows.index_select(0, padding) == 0).all().item<bool>()) << training;
        }
  }
}

TEST_P(EveryRouter, DecidesTheSameAfterItsParametersAreCopiedByName) {
  auto router = make_router(GetParam(), 1), other = make_router(GetParam(), 2);
  copy_parameters(*router, *other);
  RouterInput input = make_input(tokens());
  input.mode = ForwardMode::evaluation();
  const Routing a = router->route(input), b = other->route(input);
  EXPECT_TRUE(torch::equal(a.expert, b.expert));
  EXPECT_TRUE(torch::equal(a.gate, b.gate));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryRouter, ::testing::ValuesIn(router_names(false)), test_name);

class EverySoftRouter : public ::testing::TestWithParam<std::string> {};

TEST_P(EverySoftRouter, TrainsInALayerLeavesPaddingOutAndGivesTheSameOutputAfterASave) {
  auto layer = make_layer(GetParam(), 1), other = make_layer(GetParam(), 2);
  const TokenLayout layout{kImages, kPerImage, 1, 3, 3};
  RoutingContext padded;
  padded.valid = torch::arange(kTokens, torch::kLong).remainder(kPerImage) < 7;
  const at::Tensor padding = padded.valid.logical_not().unsqueeze(1);
  const at::Tensor x = tokens().masked_fill(padding, std::numeric_limits<float>::quiet_NaN()).requires_grad_(true);
  const MoeOutput out = layer->forward({x, layout, ForwardMode::training(), {1, 2}, padded});
  ASSERT_NE(out.routing.soft, nullptr);
  EXPECT_EQ(out.tokens.sizes(), x.sizes());
  EXPECT_TRUE(torch::isfinite(out.tokens).all().item<bool>());
  EXPECT_EQ(out.tokens.masked_select(padding).abs().max().item<double>(), 0);
  out.tokens.square().sum().backward();
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
  for (const auto& p : layer->named_parameters()) {
    EXPECT_TRUE(torch::isfinite(p.value().grad()).all().item<bool>()) << p.key();
    EXPECT_GT(p.value().grad().abs().max().item<double>(), 0) << p.key();
  }
  copy_parameters(*layer, *other);
  const at::Tensor clean = tokens();
  EXPECT_TRUE(torch::equal(layer->forward({clean, layout}).tokens, other->forward({clean, layout}).tokens));
}

INSTANTIATE_TEST_SUITE_P(Registry, EverySoftRouter, ::testing::ValuesIn(router_names(true)), test_name);

class EveryExpert : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryExpert, TrainsOnRaggedGroupsAndGivesTheSameOutputAfterACopy) {
  auto experts = make_experts(GetParam(), 1), other = make_experts(GetParam(), 2);
  const at::Tensor rows = tokens().requires_grad_(true),
                   offsets = torch::tensor(std::vector<int64_t>{0, 7, 7, 8, kTokens}, torch::kLong);
  const at::Tensor out = experts->forward(rows, offsets);
  ASSERT_EQ(out.sizes(), rows.sizes());
  out.square().sum().backward();
  for (const auto& p : experts->named_parameters()) {
    EXPECT_TRUE(torch::isfinite(p.value().grad()).all().item<bool>()) << p.key();
    EXPECT_GT(p.value().grad().abs().max().item<double>(), 0) << p.key();
    if (p.value().size(0) == kExperts) {  // expert 1 has no rows
      EXPECT_EQ(p.value().grad()[1].abs().max().item<double>(), 0) << p.key();
    }
  }
  copy_parameters(*experts, *other);
  EXPECT_TRUE(torch::equal(other->forward(rows, offsets), out));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryExpert, ::testing::ValuesIn(expert_kinds().names()), test_name);

class EveryLoss : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryLoss, IsAFiniteDifferentiableScalarOrAbsentForEveryRouter) {
  for (const RoutingLoss& loss : routing_losses()) {
    if (loss.name != GetParam()) continue;
    bool defined_somewhere = false;
    for (const std::string& name : router_names(false)) {
      auto router = make_router(name, 1);
      const at::Tensor x = tokens().requires_grad_(true);
      Routing routing = router->route(make_input(x));
      // Fields of only some routers or guided batches.
      routing.target = torch::full({kImages, kExperts}, 1.0 / kExperts);
      if (!routing.threshold.defined() && routing.scores.defined()) routing.threshold = routing.scores.detach().mean(0);
      const at::Tensor value = loss.value(routing, LossVariants());
      if (!value.defined()) continue;
      defined_somewhere = true;
      EXPECT_EQ(value.dim(), 0);
      EXPECT_GE(value.item<double>(), -1e-6) << name;
      if (!value.requires_grad()) continue;
      value.backward();
      if (x.grad().defined()) {
        EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>()) << name;
      }
    }
    EXPECT_TRUE(defined_somewhere);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryLoss, ::testing::ValuesIn(loss_names()), test_name);

}  // namespace sparsight::moe_test
